"""Health of cards: how far one is to be trusted, since when, why, and the checks that tell."""
