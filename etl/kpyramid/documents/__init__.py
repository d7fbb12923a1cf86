"""Documents: sources, decoding, cleaning, language, sentences, chunks, words and values.

Imports settings only; imported by extraction and the pipeline.
"""
