"""Controllers of a system: which has the login, what a swact moves, and what forbids it (section 2.5)."""

from __future__ import annotations

from typing import Any

import pytest
from support.starlingx_lab import PASSWORD, Lab, MakeLab

from harness.emulator.host import EmulatedHost
from harness.emulator.process import Buffer, Bytes
from harness.emulator.programs.base import Streams
from harness.emulator.starlingx.controllers import install_commands

SOURCE = "source /etc/platform/openrc; echo [$OS_PASSWORD]"
STANDBY = "Openstack Admin credentials can only be loaded from the active controller.\n[]\n"


@pytest.fixture
def two(make_lab: MakeLab) -> Lab:
    """A system with two controllers, of which the first is active."""
    lab = make_lab(standby=True)
    install_commands(lab.hosts, "head", "http://controller:5000/v3", PASSWORD)
    return lab


def said_by(machine: EmulatedHost, command: str) -> str:
    out = Buffer()
    machine.run(command, Streams(Bytes(), out, out))
    return out.data.decode()


def swact(lab: Lab, action: str = "swact", host: int = 1) -> Any:
    patch = [{"op": "replace", "path": "/action", "value": action}]
    return lab.api("PATCH", f"/ihosts/{host}", json=patch)


def logins(lab: Lab) -> list[str]:
    return [said_by(machine, SOURCE) for machine in lab.hosts]


def test_the_standby_has_the_file_and_no_password(two: Lab) -> None:
    assert logins(two) == [f"[{PASSWORD}]\n", STANDBY]


def test_a_swact_moves_the_login(two: Lab) -> None:
    assert swact(two).status_code == 200
    assert logins(two) == [STANDBY, f"[{PASSWORD}]\n"]
    assert swact(two).status_code == 400
    assert swact(two, host=2).status_code == 200
    assert logins(two) == [f"[{PASSWORD}]\n", STANDBY]


@pytest.mark.parametrize("updating", [1, 2])
def test_no_swact_while_a_controller_updates_its_images(two: Lab, updating: int) -> None:
    two.system.database.change("i_host", updating, device_image_update="in-progress")
    answer = swact(two)
    assert (answer.status_code, two.said(answer)) == (
        400,
        f"Rejected: Cannot swact controller-0 while controller-{updating - 1} is updating device images.",
    )
    assert logins(two) == [f"[{PASSWORD}]\n", STANDBY]
    assert swact(two, "force-swact").status_code == 200
    assert logins(two) == [STANDBY, f"[{PASSWORD}]\n"]


def test_the_standby_takes_over_when_the_active_one_goes_down(two: Lab) -> None:
    two.machine.power_off()
    assert said_by(two.hosts[1], SOURCE) == f"[{PASSWORD}]\n"
    two.machine.power_on()
    two.pass_time(600)
    assert logins(two) == [STANDBY, f"[{PASSWORD}]\n"]


def test_one_controller_has_nowhere_to_go(make_lab: MakeLab) -> None:
    lab = make_lab()
    install_commands(lab.hosts, "head", "http://controller:5000/v3", PASSWORD)
    assert swact(lab).status_code == 400
    lab.reboot()
    assert logins(lab) == [f"[{PASSWORD}]\n"]


def test_http_parameters_are_not_applied_while_images_are_updated(two: Lab) -> None:
    def apply(service: str) -> Any:
        return two.api("POST", "/service_parameter/apply", json={"service": service})

    assert apply("http").status_code == 200
    uuid = two.upload("unsigned")
    two.apply(uuid)
    assert [alarm["alarm_id"] for alarm in two.alarms()] == ["900.006"]
    assert (apply("http").status_code, two.said(apply("http"))) == (
        400,
        "Unable to apply http service parameters. A device image update operation is in progress. Please try "
        "again later when the operation is complete.",
    )
    assert apply("docker").status_code == 200
    two.change(uuid, "remove")
    assert apply("http").status_code == 200


def test_a_host_of_another_name_is_a_worker_without_commands(two: Lab) -> None:
    worker = EmulatedHost("host3", two.clock, "compute-0")
    worker.power_on()
    two.hosts.append(worker)
    again = two.restarted()
    install_commands(two.hosts, "head", "http://controller:5000/v3", PASSWORD)
    shown = {
        host["hostname"]: (host["personality"], host["subfunctions"])
        for host in again.get("/ihosts")["ihosts"]
    }
    assert shown == {
        "controller-0": ("controller", "controller,worker"),
        "controller-1": ("controller", "controller,worker"),
        "compute-0": ("worker", "worker"),
    }
    said = said_by(worker, "source /etc/platform/openrc; system host-list; fm alarm-list")
    assert said.count("not found") == 2
    assert "/etc/platform/openrc: No such file or directory" in said
    assert "nodetype=worker" in said_by(worker, "cat /etc/platform/platform.conf")


def test_where_none_is_called_so_the_first_host_is_the_controller(make_lab: MakeLab) -> None:
    lab = make_lab(host=False)
    for number in (0, 1):
        lab.hosts.append(EmulatedHost(f"host{number}", lab.clock, f"compute-{number}"))
    again = lab.restarted()
    shown = {host["hostname"]: host["personality"] for host in again.get("/ihosts")["ihosts"]}
    assert (shown["compute-0"], shown["compute-1"]) == ("controller", "worker")
