"""Facts about entities, read from the clauses of a sentence.

Imported by `extraction.openie`.
"""
