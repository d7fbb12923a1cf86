"""The parse and what grammar reads off it: trees, phrases, verb groups, clause frames."""
