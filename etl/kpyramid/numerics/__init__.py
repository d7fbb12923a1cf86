"""The mathematics: Gaussians, priorities, k-medoids, neighbours. Imports nothing of the package."""
