"""Calls to language models: each is booked, and none paid twice. Knows no task.

Imports settings and storage; imported by every room with a task for a model.
"""
