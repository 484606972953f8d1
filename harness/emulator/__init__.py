"""Emulated cards, the hosts that they sit in, and the time that passes for both."""
