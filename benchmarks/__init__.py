"""What the harness costs, held to the goals of docs/benchmarks.md. `make bench` prints the table."""
