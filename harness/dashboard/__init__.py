"""A page that shows what goes on: running runs, devices, the newest divergences, trends."""
