"""What is asked of an ontology and its instances before they are published: the gates."""
