"""Benchmark sets as questions and corpora, one module per family."""
