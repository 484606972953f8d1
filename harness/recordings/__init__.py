"""Recordings of real cards: what a host showed of them, in one file, to be replayed without them."""
