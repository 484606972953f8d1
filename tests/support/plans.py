"""Plans for tests of the plugin: an inventory with a card or two, and what a run of it left."""

import json
import re
import subprocess
import textwrap
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.judgement.records import Record
from harness.lab.emulator import Doors
from harness.record.history import read_history
from harness.record.runs import histories

PROJECT = Path(__file__).parents[2]

#: ``one`` permits everything; ``two`` nothing that cannot be undone, and its power cannot be switched.
INVENTORY = """\
version: 1
default_lab: small
labs:
  small:
    hosts:
      one:
        emulated: {}
        cards:
          card0:
            address: 0000:b2:00.0
            identity: 64:4c:36:00:00:01
            irreversible: [root-key, key-cancellation]
      two:
        emulated: {power: false}
        cards:
          card0:
            address: 0000:b2:00.0
            identity: 64:4c:36:00:00:02
"""

PREAMBLE = """\
import pytest
from harness.scenarios.promises import factory, lands, unchanged

DOC = "a document"
"""
#: Plugins that only cost time where they are not what is tested.
LEAN = ("-p", "no:hypothesispytest", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:labgrid")


def lay_out(folder: Path, inventory: str = INVENTORY) -> None:
    """Make ``folder`` a project with an inventory and the recipes of images."""
    (folder / "inventory.yaml").write_text(inventory, encoding="utf-8")
    (folder / "fixtures").symlink_to(PROJECT / "fixtures")


def real_inventory(doors: Doors, irreversible: str = "[]", port: int | None = None) -> str:
    """Return the inventory of :data:`INVENTORY`'s hosts, which run behind ``doors``, as one of real hosts."""
    lines = ["version: 1", "default_lab: small", "labs:", "  small:", "    hosts:"]
    for number, (name, door) in enumerate(doors.hosts.items(), start=1):
        lines += [
            f"      {name}:",
            f"        ssh: {{address: {door.address}, port: {port or door.port}, user: {door.user}, "
            f"known_hosts: {doors.known_hosts}, credentials: {{key_file: {doors.key_file}}}}}",
            f"        cards: {{card0: {{address: '0000:b2:00.0', identity: '64:4c:36:00:00:0{number}', "
            f"irreversible: {irreversible}}}}}",
        ]
    return "\n".join(lines) + "\n"


def write_plan(folder: Path, source: str, name: str = "test_plan.py") -> Path:
    """Write scenarios, with what they import, to a file of the project ``folder``."""
    path = folder / name
    path.write_text(PREAMBLE + "\n\n" + textwrap.dedent(source), encoding="utf-8")
    return path


@dataclass(frozen=True)
class Ended:
    """A run that has ended, of pytest or of `hil`."""

    folder: Path
    code: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout + self.stderr

    @property
    def run_dir(self) -> Path:
        """The only run that was left."""
        runs = [
            path for path in (self.folder / "reports").iterdir() if path.is_dir() and not path.is_symlink()
        ]
        assert len(runs) == 1, runs
        return runs[0]

    @property
    def results(self) -> dict[str, Any]:
        return json.loads((self.run_dir / "results.json").read_text(encoding="utf-8"))

    @property
    def scenarios(self) -> dict[str, dict[str, Any]]:
        """Test name with its parameters -> what results.json has of it."""
        return {found["name"].split("::", 1)[1]: found for found in self.results["scenarios"]}

    @property
    def states(self) -> dict[str, str]:
        return {name: found["state"] for name, found in self.scenarios.items()}

    @property
    def records(self) -> list[Record]:
        return [record for path in histories(self.run_dir) for record in read_history(path)]

    @property
    def junit(self) -> dict[str, dict[str, str]]:
        """Test name -> properties that JUnit XML carries, and ``message`` of what is wrong with it."""
        found: dict[str, dict[str, str]] = {}
        for case in ET.parse(self.folder / "junit.xml").getroot().iter("testcase"):
            carried = found.setdefault(case.attrib["name"], {})
            carried |= {p.attrib["name"]: p.attrib["value"] for p in case.iter("property")}
            for tag in ("failure", "error", "skipped"):
                for wrong in case.iter(tag):
                    carried[tag] = f"{wrong.attrib.get('message', '')}\n{wrong.text or ''}"
        return found


def lines_with(text: str, *parts: str) -> list[str]:
    """Return the lines of ``text`` that have all of ``parts``."""
    return [line for line in text.splitlines() if all(part in line for part in parts)]


def without_colour(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def ended(folder: Path, done: "subprocess.CompletedProcess[str]") -> Ended:
    return Ended(folder, done.returncode, done.stdout, done.stderr)
