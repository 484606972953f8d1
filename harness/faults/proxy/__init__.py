"""An HTTP-aware, TLS-terminating proxy that holds requests at exact points of the protocol."""
