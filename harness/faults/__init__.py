"""Deliberate disturbances: named points of an operation, actions, and their undo."""
