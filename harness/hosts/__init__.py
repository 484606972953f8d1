"""Reach a machine: run declared read-only commands and read; anything else needs a permit."""
