"""Adapters to libraries that none of the package needs; a module each, imported by users alone."""
