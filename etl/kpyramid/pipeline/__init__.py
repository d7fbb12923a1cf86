"""A build: stages as data, wiring, runner, cache, plan, gates, publication and report.

Imports every room below it; imported by the command line and the DAGs.
"""
