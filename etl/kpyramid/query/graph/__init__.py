"""Facts near a question, what bears on it, and whether they suffice."""
