"""Measures of quality, each proven on the published output of another system."""
