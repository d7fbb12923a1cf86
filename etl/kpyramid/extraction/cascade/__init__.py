"""Extraction by a language model: the tasks, their order, and the check of what comes back.

A task is one module: its prompt, the model of its reply and its parser stand together under one
`VERSION`, which goes up with every change of them. It has `NAME`, `VERSION`, `SYSTEM` (the
template), `Answer` (the reply), `render` and `parse`.
"""

from kpyramid.extraction.cascade.tasks import describe_tasks

__all__ = ["describe_tasks"]
