"""An index of runs over time. The histories are the truth: the index can be made from them again."""
