"""The stages: pure functions from tables to tables, one verb a module with one public `run`.

`kpyramid.pipeline.stage` has their order; the runner calls them.
"""
