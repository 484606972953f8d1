"""200 subclouds with one card each, all emulated by one process: an orchestration, an audit, `hil status`.

Measured in a process of its own (``python -m benchmarks.many_subclouds ROUNDS``), so that nothing that was
measured before is still there. Connections are open, as in ``hil status --every``.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks import labs
from benchmarks.rows import Row, Samples, in_turn, seconds_of
from harness.cli import status
from harness.cli.form import Form
from harness.cli.remembered import Remembered
from harness.cli.status_text import show
from harness.controlplane.connections import Body, form_body, json_body
from harness.controlplane.session import Session
from harness.images.recipes import build, load_recipes
from harness.lab.running import RunningLab
from harness.lab.systems import login_of
from harness.lab.watch import Watch

SUBCLOUDS: Final = 200
_FIFTH: Final = SUBCLOUDS // 5
_REQUESTS: Final = 25
_STRATEGY: Final = "/sw-update-strategy"


def measure(rounds: int) -> list[Row]:
    """Return the rows of time, of its being linear, of one request, and of memory."""
    command = [sys.executable, "-m", "benchmarks.many_subclouds", str(rounds)]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    whole, fifth = Samples(tuple(found["whole"])), Samples(tuple(found["fifth"]))
    asked, bare = Samples(tuple(found["asked"])), Samples(tuple(found["bare"]))
    spent = found["spent"]
    note = (
        f"started in {spent['start']:.2f} s, the first look with its logins took {spent['first']:.1f} s, "
        f"one strategy over all {spent['strategy']:.1f} s (of lab time {spent['lab_time']:.0f} s), one "
        f"audit {spent['audit']:.2f} s; a status takes {spent['own']:.2f} s of processor time here and "
        f"{spent['emulator']:.2f} s in the emulator"
    )
    return [
        Row(
            "200 subclouds, status",
            "`hil status` of controller, subclouds and their cards, connections open",
            "ms",
            whole,
            1500,
            note=note,
        ),
        Row(
            "200 subclouds, linear",
            "takes no longer per subcloud than a fifth of them",
            "ms",
            whole,
            1.1,
            "ratio",
            f"5 x {_FIFTH} subclouds",
            fifth.scaled(SUBCLOUDS / _FIFTH),
        ),
        Row(
            "REST round trip",
            "what the harness adds to one request for a system's hosts",
            "ms",
            asked.minus(bare),
            1,
            peer="the same request alone",
            peer_result=bare,
        ),
        Row(
            "200 subclouds, memory",
            "the emulator's process (RSS), after all of that",
            "MiB",
            Samples((found["mib"],)),
            150,
        ),
    ]


class _Cloud:
    """The cloud of a running lab, and sessions with its systems."""

    def __init__(self, lab: RunningLab) -> None:
        assert lab.bench is not None
        self.lab = lab
        self.bench = lab.bench
        self.central = self.session("central", "SystemController")

    def session(self, name: str, region: str = "") -> Session:
        """Return a session with one of the systems."""
        return Session(name, login_of(self.lab, self.lab.entry.controllers[name], region))

    def prepare(self) -> None:
        """Have an image applied on the controller to a label that every card carries."""
        for number in range(SUBCLOUDS):
            subcloud = self.session(f"sub{number}")
            shown, _ = subcloud.ask("GET", "/pci_devices")
            card = next(d for d in shown["pci_devices"] if d["pdevice_id"] == "0b30")
            subcloud.ask(
                "POST", "/device_labels", body=json_body([{"k": "v"}, {"pcidevice_uuid": card["uuid"]}])
            )
            subcloud.close()
        recipes = load_recipes(Path("fixtures/images.yaml").read_text(encoding="utf-8"))
        fields = {"bitstream_type": "functional", "pci_vendor": "8086", "pci_device": "0b30"}
        body = form_body(fields | {"bitstream_id": "0x2"}, "a.bin", build(recipes["unsigned"]))
        shown, _ = self.central.ask("POST", "/device_images", body=body)
        uuid = shown["device_image"]["uuid"]
        self.central.ask("PATCH", f"/device_images/{uuid}?action=apply", body=json_body([{"k": "v"}]))
        self.audit()

    def audit(self) -> None:
        """Have every subcloud audited."""
        self.bench.trouble("central", "audit-now")

    def orchestrate(self) -> None:
        """Have one strategy update every subcloud at once."""
        body = {"type": "firmware", "max-parallel-subclouds": SUBCLOUDS}
        self._ask("POST", f"{_STRATEGY}/", json_body(body))
        self._ask("POST", f"{_STRATEGY}/actions?type=firmware", json_body({"action": "apply"}))
        while (state := self._ask("GET", f"{_STRATEGY}?type=firmware")["state"]) == "applying":
            time.sleep(0.05)
        assert state == "complete", state
        found = self._ask("GET", f"{_STRATEGY}/steps")["strategy-steps"]
        assert [step["state"] for step in found] == ["complete"] * SUBCLOUDS

    def _ask(self, method: str, path: str, body: Body | None = None) -> Any:
        return self.central.ask(method, path, service="dcmanager", body=body)[0]


def _status(lab: RunningLab, names: Sequence[str]) -> Callable[[], None]:
    """Return what `hil status` of these systems does each time."""
    memory = Remembered()
    wanted, asked = status._chosen(list(names), lab.entry)
    watch = Watch(lab, asked, memory)

    def look() -> None:
        rows = status._look(watch, memory, wanted)
        assert len({row.device for row in rows}) >= len(names), rows[:3]
        with redirect_stdout(io.StringIO()):
            show(rows, Form.TABLE, live=False)

    return look


def _requests(lab: RunningLab) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return one request by the harness, and the same request alone."""
    session = Session("sub0", login_of(lab, lab.entry.controllers["sub0"]))
    session.ask("GET", "/ihosts")
    token = session._valid_token(time.monotonic() + 10)
    place = urlsplit(token.urls["platform"])
    bare = http.client.HTTPConnection(str(place.hostname), place.port)

    def alone() -> None:
        bare.request("GET", f"{place.path}/ihosts", headers={"X-Auth-Token": token.text})
        json.loads(bare.getresponse().read())

    return lambda: session.ask("GET", "/ihosts"), alone


def _measured(lab: RunningLab, rounds: int) -> dict[str, Any]:
    cloud = _Cloud(lab)
    names = [f"sub{number}" for number in range(SUBCLOUDS)]
    cloud.prepare()
    spent = {"lab_time": -cloud.bench.lab_time()}
    spent["strategy"] = seconds_of(cloud.orchestrate)
    spent["lab_time"] += cloud.bench.lab_time()
    spent["audit"] = seconds_of(cloud.audit)
    whole_look = _status(lab, names)
    spent["first"] = seconds_of(whole_look)
    # The fifth has its own connections, so that both are asked in the same rounds.
    whole, fifth = in_turn((whole_look, _status(lab, names[:_FIFTH])), rounds)
    asked, bare = in_turn(_requests(lab), rounds * _REQUESTS)
    assert lab.process_id is not None
    own, its = time.process_time(), _processor_seconds(lab.process_id)
    whole_look()
    spent["own"] = time.process_time() - own
    spent["emulator"] = _processor_seconds(lab.process_id) - its
    return {
        "whole": whole.values,
        "fifth": fifth.values,
        "asked": asked.values,
        "bare": bare.values,
        "mib": _mib(lab.process_id),
        "spent": spent,
    }


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


def main() -> None:
    """Measure, and print what was found as JSON."""
    opened = labs.cloud(SUBCLOUDS)
    entered: list[RunningLab] = []
    start = seconds_of(lambda: entered.append(opened.__enter__()))
    try:
        found = _measured(entered[0], int(sys.argv[1]))
        found["spent"]["start"] = start
        print(json.dumps(found))
    finally:
        opened.__exit__(None, None, None)


if __name__ == "__main__":
    main()
