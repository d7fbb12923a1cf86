"""Passages that answer a question, over a bridge where it takes several."""
