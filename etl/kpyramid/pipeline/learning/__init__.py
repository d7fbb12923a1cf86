"""What a pyramid learns from the questions that it was asked (WTS, 3.2.2 and 3.3).

`learn.py` is imported by the command line; `statements.py` by the list of tasks too.
"""

HOPS = 1
"""H of Algorithm 1, which must be below D: 2 to 4 in the paper, which does not give H."""
SOURCE_SHARE, SOURCE_ROWS = 0.5, 20
"""Largest share of a run's learnt rows from one source, and rows that any source may give. Ours: a
source may give as much as all others together, and a first user may give something."""
