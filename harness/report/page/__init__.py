"""The report that people read: one HTML file with everything in it, for a browser without a network."""
