"""An ontology from outside: read in a limited child, completed, every change named."""
