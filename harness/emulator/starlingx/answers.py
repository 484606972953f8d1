"""How sysinv says no: the errors of its API and the bodies that they become."""

from __future__ import annotations

import json
from typing import Any, Literal


class Refused(Exception):
    """A request that sysinv refuses with a text. ``fault``: who is to blame, as WSME says it."""

    def __init__(self, status: int, text: str, fault: Literal["Client", "Server"] = "Client") -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.fault = fault

    def body(self) -> dict[str, Any]:
        """Return the body of a WSME route: JSON in JSON (section 2)."""
        inner = {"debuginfo": None, "faultcode": self.fault, "faultstring": self.text}
        return {"error_message": json.dumps(inner)}


class Unhandled(Exception):
    """A mistake inside sysinv that its POST of an image does not catch: status 500, and no JSON."""


#: What the client sees of an unhandled error; the wording is inferred, that it is no JSON is stated.
SERVER_ERROR_PAGE = (
    "<html>\n <head>\n  <title>500 Internal Server Error</title>\n </head>\n <body>\n"
    "  <h1>500 Internal Server Error</h1>\n"
    "  The server has either erred or is incapable of performing the requested operation.<br /><br />\n"
    "\n\n\n </body>\n</html>"
)
NOT_AUTHORIZED = "The requested action is not authorized"


def boolean(text: Any) -> bool:
    """Return the boolean that ``text`` stands for. :raises ValueError: for none."""
    word = str(text).strip().lower()
    if word in ("1", "t", "true", "on", "y", "yes"):
        return True
    if word in ("0", "f", "false", "off", "n", "no"):
        return False
    raise ValueError(f"{text!r} is no boolean")
