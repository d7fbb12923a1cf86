"""A first ontology of a field, cut from word nets."""
