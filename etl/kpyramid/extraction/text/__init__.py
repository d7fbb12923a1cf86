"""Text before it is parsed: sentences, chunks, passages, language, and what is no prose."""
