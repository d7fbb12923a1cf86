"""Strategies compared on questions with known answers: metrics, harness, reading of questions.

Imports `query`; imported by the gates and the command line.
"""
