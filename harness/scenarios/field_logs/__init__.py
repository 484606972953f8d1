"""From what engineers paste into bug trackers to events, claims, and the draft of a scenario."""
