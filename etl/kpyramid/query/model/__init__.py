"""Decisions on the way to an answer as a model takes them: a query, sufficiency, the answer."""
