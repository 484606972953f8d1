"""Whom TLS clients of the harness trust: the same certificates with every Python."""

from __future__ import annotations

import ssl
from pathlib import Path


def client_context(ca_file: Path | str | None = None) -> ssl.SSLContext:
    """Return what servers are verified by: the authorities in ``ca_file``, or else those of the system.

    Python 3.13 has begun to refuse what does not keep RFC 5280 to the letter, such as an authority without
    keyUsage (`What's New in Python 3.13`, ssl). Labs have such ones, and Docker, skopeo and curl take them.

    :raises OSError: the file cannot be read, or has no certificate.
    """
    context = ssl.create_default_context(cafile=ca_file)
    context.verify_flags &= ~(ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN)
    return context
