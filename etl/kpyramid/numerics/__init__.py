"""Numbers: Gaussians of layers, clusters of phrases. Nothing here knows of tables."""
