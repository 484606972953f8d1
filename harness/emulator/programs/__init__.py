"""The programs of an emulated host, one module for each family."""
