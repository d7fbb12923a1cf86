"""Ontology induction, f_ins (PolyRAG Eq. 1): which values of a schema's properties a text states."""
