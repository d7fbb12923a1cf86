"""The reader by rules: which value or candidate a context says, how surely, and where."""
