"""The top layer of the pyramid: schema, instances, and queries over both.

Only this folder imports pyoxigraph, rdflib or owlready2.
"""
