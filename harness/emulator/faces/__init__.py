"""How an emulated host is shown to programs that run on this machine: a mounted file system, udev."""
