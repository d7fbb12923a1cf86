"""Where builds keep their bytes: tables, caches, snapshots, refs, runs."""
