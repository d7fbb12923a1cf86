"""Calls to language models: every call counted, none paid twice. Knows no task.

Imports settings and storage; imported by every room with a task for a model.
"""
