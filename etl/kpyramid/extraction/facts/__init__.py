"""What a text states: `clauses`, `copulas` and `nominals` propose it as `candidates`, once.

Two projections follow: `assembly` makes triples with their claims, `propositions` n-ary facts.
Imported by `extraction.openie`.
"""
