"""What a StarlingX system says, and how it is asked: REST, or its own command line over SSH."""
