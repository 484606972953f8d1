"""An emulated distributed cloud: dcmanager and its audit, the proxy and vault, and the VIM of every system.

What it does is the fact sheet of the registry and of device images, sections 3.6, 5 and 6.1, quirks included.
"""
