"""An ontology from outside: read in a limited child process, completed, every change named.

Imported by the command line.
"""
