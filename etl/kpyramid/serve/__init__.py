"""A snapshot behind HTTP, with a page, and as tools of an agent; imported by the command line."""
