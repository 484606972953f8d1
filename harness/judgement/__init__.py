"""What was intended, claimed and observed, and the pure checkers that turn it into verdicts."""
