"""Calling language models: every call counted, none paid twice. Knows nothing of any task."""
