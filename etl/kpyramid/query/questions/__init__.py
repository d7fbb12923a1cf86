"""From a question in English to a query over any RDF graph, by rules: linking, joining, writing."""
