"""The snapshot's folder `index/`: `building` writes it; the query module maps it and reads it.

What both sides share (`mapped`, `nearest`, `words`, `wording`) imports nothing heavy.
"""
