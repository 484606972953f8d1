"""What of a lab works, what is missing, and how to fix it: from this machine to its controllers."""
