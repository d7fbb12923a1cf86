"""The mathematics: Gaussians, priorities, k-medoids. Imports nothing of the package."""
