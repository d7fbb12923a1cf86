"""Questions answered by rules: SPARQL written, context read, answers verified without a model.

Implements the port of `query`, which loads it when rules are asked for.
"""
