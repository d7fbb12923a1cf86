"""Phrases as vectors: one port, four providers.

Imports llm for served models; imported by whatever compares meanings.
"""
