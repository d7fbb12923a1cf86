"""Ontology population, f_ins (PolyRAG Eq. 1): values of a schema's properties found in text.

Imports extraction, embeddings and llm; imported by completion and the pipeline.
"""
