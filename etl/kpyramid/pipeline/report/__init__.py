"""The report of a run: one HTML page with figures, tables and both layers of the pyramid.

Imported by the build and the command line.
"""
