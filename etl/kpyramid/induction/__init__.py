"""Ontology induction, f_ins (PolyRAG Eq. 1): the values of a schema's properties in a text."""
