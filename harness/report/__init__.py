"""What a run leaves for people and machines: the summary and the results."""
