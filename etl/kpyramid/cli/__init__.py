"""The command line: one module per group of commands, and the console.

Imports everything; nothing imports it.
"""
