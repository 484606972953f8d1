"""`curl` of a system's hosts, as far as an image is got from the controller with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from harness.emulator.host import EmulatedHost
    from harness.emulator.programs.base import Invocation
    from harness.emulator.starlingx.agent import Fetch

#: curl's own exit codes and default port.
_NO_CONNECTION: Final = 7
_HTTP_ERROR: Final = 22
_MISUSED: Final = 2
_PORT: Final = 80


def install_curl(hosts: Sequence[EmulatedHost], fetch: Fetch) -> None:
    """Give the hosts of a system ``curl``. ``fetch``: gets files from their controller."""
    from harness.emulator.programs.base import Executable

    def curl(run: Invocation) -> int:
        urls = [word for word in run.argv[1:] if not word.startswith("-")]
        match = re.fullmatch(r"http://controller(?::([0-9]+))?(/.*)", urls[0]) if len(urls) == 1 else None
        if match is None:
            return _complain(run, _MISUSED, "no URL of the controller was given")
        port = int(match[1] or _PORT)
        try:
            run.streams.stdout.write(fetch(port, match[2]))
        except ConnectionRefusedError:
            text = f"Failed to connect to controller port {port}: Connection refused"
            return _complain(run, _NO_CONNECTION, text)
        except OSError as error:
            status = str(error).removeprefix("HTTP Error ").partition(":")[0]
            return _complain(run, _HTTP_ERROR, f"The requested URL returned error: {status}")
        return 0

    for host in hosts:
        host.programs["curl"] = curl
        host.vfs.place("/usr/bin/curl", Executable("curl", curl))


def _complain(run: Invocation, code: int, text: str) -> int:
    run.streams.stderr.write(f"curl: ({code}) {text}\n".encode())
    return code
