"""The commands of a system run on its active controller, whichever that is, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from support.served_system import Serve, Served

from harness.controlplane.changes import Change
from harness.controlplane.cli import CliWay
from harness.controlplane.gate import Permits
from harness.controlplane.protocol import Upload
from harness.emulator.programs.base import Executable, Invocation
from harness.errors import BlockedError, ControlPlaneError, NotActiveError

UPLOAD = Change("image-upload", image=Upload(b"image", "a.bin", "functional", bitstream_id="2"))


@pytest.fixture
def two(serve: Serve) -> Served:
    """A system with two controllers, of which the first is active."""
    return serve(standby=True)


def swact(served: Served, number: int = 1) -> None:
    patch = [{"op": "replace", "path": "/action", "value": "swact"}]
    assert served.lab.api("PATCH", f"/ihosts/{number}", json=patch).status_code == 200


def do(way: CliWay, change: Change) -> list[Any]:
    return way.carry_out(change, Permits(change, "a test"))


def runs_of(served: Served) -> list[str]:
    """Note the hosts on which `system` is run from now on."""
    seen: list[str] = []
    for machine in served.lab.hosts:
        real = machine.programs["system"]

        def program(run: Invocation, real: Any = real) -> int:
            seen.append(run.host.hostname)
            return int(real(run))

        machine.vfs.unlink("/usr/bin/system")
        machine.vfs.place("/usr/bin/system", Executable("system", program))
    return seen


def test_the_standby_is_passed_over_and_not_asked_again(two: Served) -> None:
    way = CliWay("system1", two.controller(1), two.controller(0))
    runs = runs_of(two)
    assert len(way.hosts()) == 2
    way.images()
    assert runs == ["controller-1", "controller-0", "controller-0"]


def test_a_swact_is_followed(two: Served) -> None:
    way = CliWay("system1", two.controller(0), two.controller(1))
    assert len(way.hosts()) == 2
    swact(two)
    (image,) = do(way, UPLOAD)
    runs = runs_of(two)
    assert [found.uuid for found in way.images()] == [image.uuid]
    assert way.alarms() == []
    assert runs == ["controller-1"]
    for machine in two.lab.hosts:
        assert [name for name in machine.vfs.listdir("/tmp") if name.startswith("hil-")] == []


def test_a_controller_that_is_down_is_passed_over(two: Served) -> None:
    way = CliWay("system1", two.controller(0), two.controller(1))
    two.lab.machine.power_off()
    assert {host.hostname: host.availability for host in way.hosts()} == {
        "controller-0": "offline",
        "controller-1": "available",
    }


def test_the_standby_alone_is_told(two: Served) -> None:
    way = CliWay("system1", two.controller(1))
    with pytest.raises(NotActiveError, match=r"no login on controller-1\.system1: You must provide a passw"):
        way.images()
    with pytest.raises(NotActiveError):
        do(way, UPLOAD)
    assert two.lab.get("/device_images") == {"device_images": []}


def test_no_active_controller_at_all(two: Served) -> None:
    way = CliWay("system1", two.controller(0), two.controller(1))
    two.lab.machine.vfs.unlink("/opt/platform/.keyring/.CREDENTIAL")
    with pytest.raises(NotActiveError, match=r"is its active controller: .*-0\..*-1\."):
        way.images()


def test_a_refusal_is_no_reason_to_ask_elsewhere(two: Served) -> None:
    way = CliWay("system1", two.controller(0), two.controller(1))
    runs = runs_of(two)
    with pytest.raises(ControlPlaneError, match="not in the process of updating"):
        do(way, Change("host-abort", "controller-0"))
    assert runs == ["controller-0"]


def test_without_hosts_no_command_can_run() -> None:
    with pytest.raises(BlockedError, match="system1 has no host"):
        CliWay("system1")
