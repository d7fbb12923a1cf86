"""Binary facts for the graph: candidates, their antecedents, claims, mentions, confidence."""
