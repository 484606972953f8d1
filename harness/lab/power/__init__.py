"""The power of a host: asked of its controller or of a command, and seen to be so before it is believed."""
