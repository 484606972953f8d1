"""From an inventory to a running lab and back."""
