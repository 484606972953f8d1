"""A test harness that holds what FPGA cards and registries are reported to be to what they are."""

__version__ = "0.1.0"
