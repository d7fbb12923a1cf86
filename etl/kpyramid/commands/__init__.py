"""The command line's groups of commands, a module each."""
