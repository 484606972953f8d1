"""One emulated StarlingX system: Keystone, sysinv's API and conductor, and the agents on its hosts.

What it does is the fact sheet of the registry and of device images, sections 1 to 4 and 6.1, quirks included.
"""
