"""Facts that say the same become one, around the ontology's anchors (PolyRAG §III-C)."""
