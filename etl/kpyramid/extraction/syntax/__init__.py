"""A sentence's dependency parse, repaired and read as clauses.

Imported by extraction and ontology population.
"""
