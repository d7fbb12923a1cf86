"""What lies on disk: declarations, table contracts, results, snapshots, refs and runs.

Imports errors, keys and settings.
"""
