"""Emulated cards, the hosts that they sit in, and the time that passes for both."""

from harness.late_import import import_when_used

# Paramiko imports it for the "Match exec" of an ssh_config, which is not read here: 40% of paramiko's import.
import_when_used("invoke")
