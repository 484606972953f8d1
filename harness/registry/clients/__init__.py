"""Clients that push images to a registry and pull them, each with its own honest report."""
