"""The Batch API: requests submitted as files, results collected, each counted once.

Imported by the command line and the plan.
"""
