"""A process that switches a host on and sees it on: a watchdog runs it where the harness died in between."""

from __future__ import annotations

import sys
from contextlib import closing

from harness.errors import HarnessError
from harness.lab.power.access import PowerAccess
from harness.lab.power.switch import switched


def main() -> int:
    """Take how the power is switched from standard input; return 0 once the host is seen to be on."""
    access = PowerAccess.from_text(sys.stdin.read())
    try:
        with closing(access.opened()) as switch:
            switched(access.name, switch, "on", access.deadline)
    except HarnessError as error:
        print(error.message, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
