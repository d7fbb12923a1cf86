"""The ontology layer: schema, literals, store and SPARQL; no other room imports an RDF library.

Imports errors and keys (`population` also extraction, embeddings, llm).
"""
