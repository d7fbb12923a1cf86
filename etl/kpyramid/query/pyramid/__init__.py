"""An opened snapshot: its index, names, facts, places, and what of it may be seen."""
