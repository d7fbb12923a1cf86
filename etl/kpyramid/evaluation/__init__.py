"""Strategies compared on questions whose answers are known: metrics, harness, question making.

Imports `query`; imported by the gates and the command line.
"""
