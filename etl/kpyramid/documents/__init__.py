"""Documents: sources, decoding, cleaning, language, sentences and chunks.

Imports settings only; imported by extraction and the pipeline.
"""
