"""Question answering by rules: the twin of a model behind the port of `kpyramid.query`.

Question to SPARQL, reader, sufficiency of facts, answer verification; loaded only when asked for.
It imports the port, types and question analysis of `query`, and the snapshot. Nothing else of the
package imports it: `query.decisions` loads it when rules are chosen.
"""
