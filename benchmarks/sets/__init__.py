"""Public benchmark sets, one module each: reading it, its published scores, its questions.

Scripts in `benchmarks/` and their tests import from here, nothing else does. A module's `read`
gives a folder as a `QuestionSet`, or None where the folder is of another form; a folder is
recognised by its files and their fields, never by its name.
"""
