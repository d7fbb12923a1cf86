"""What the graph says often and the ontology lacks, as proposals (PolyRAG §III-B)."""
