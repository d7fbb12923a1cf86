"""Validation before publication: reasoner, SHACL shapes, violation queries, competency questions.

Imported by the gates and the command line.
"""
