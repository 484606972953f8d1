"""An inventory that is right, and how one that is not is refused."""

from pathlib import Path

import pytest

from harness.errors import ConfigurationError
from harness.inventory.load import load_inventory

GOOD = """\
version: 1
default_lab: bench
labs:
  bench:
    hosts:
      twin:
        emulated:
        cards:
          left: {address: "1B:00.0", identity: 64-4C-36-00-00-01, irreversible: [root-key]}
          right: {address: 0000:5e:00.0, identity: 64:4c:36:00:00:02}
      rack7:
        ssh: {address: 10.0.0.7, user: sysadmin, credentials: {key_file: keys/lab}}
        power: {command: {off: ipmitool -E power off, on: [ipmitool, -E, power, "on"]}}
        cards:
          card0: {address: 0000:b2:00.0}
"""


def rejected(path: Path) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_inventory(path)
    assert caught.value.exit_code == 2
    assert caught.value.hint
    return caught.value.message
