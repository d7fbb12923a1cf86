"""The knowledge graph: names resolved to entities, phrases to relations; synonyms of relations.

Imports extraction, embeddings and llm; imported by completion, condensation, the pipeline.
"""
