"""What a pyramid learns from the questions that it was asked (WTS, 3.2.2 and 3.3).

`learn.py` is imported by the command line; `task.py` by the list of tasks.
"""
