"""Vectors of texts: one port, several models behind it."""
