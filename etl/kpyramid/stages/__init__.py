"""The stages: pure functions from tables to tables. `kpyramid.pipeline` has their order."""
