"""`hil lab up|status|down`: labs that stay, are found again, and are cleaned up after however they ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.cli.lab import app
from harness.errors import ConfigurationError, InfrastructureError
from harness.inventory.load import load_inventory
from harness.lab.background import BackgroundLab, background_lab, background_labs


@pytest.fixture
def project(inventory_file: Path, tmp_path: Path) -> Iterator[Path]:
    """A directory with an inventory of its own; every lab in it is stopped afterwards."""
    (tmp_path / "inventory.yaml").write_text(inventory_file.read_text())
    yield tmp_path
    for lab in background_labs(load_inventory(tmp_path / "inventory.yaml")):
        lab.down()


@pytest.fixture
def hil(project: Path) -> Any:
    def run(*words: str) -> Any:
        return CliRunner().invoke(app, [*words, "--inventory", str(project / "inventory.yaml")])

    return run


def status(hil: Any) -> dict[str, Any]:
    return {entry["name"]: entry for entry in json.loads(hil("status", "-o", "json").stdout)}


def test_up_prints_command_lines_that_log_in(hil: Any) -> None:
    result = hil("up")
    assert result.exit_code == 0
    lines = [line.split(maxsplit=1) for line in result.stdout.splitlines() if line.startswith("  ")]
    assert [name for name, _ in lines] == ["left", "right"]
    for _, command in lines:
        line = f"{command} cat /etc/hostname"
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "controller-0\n")


def test_status_tells_what_runs_and_down_is_idempotent(hil: Any, project: Path) -> None:
    assert json.loads(hil("status", "-o", "json").stdout) == []
    assert hil("down").stdout == "small: was not running\n"
    hil("up")
    entry = status(hil)["small"]
    assert entry["running"]
    assert Path(f"/proc/{entry['pid']}").exists()
    assert {host["name"] for host in entry["hosts"]} == {"left", "right"}
    assert hil("down").stdout == "small: stopped\n"
    assert hil("down").stdout == "small: was not running\n"
    assert not Path(entry["control"]).parent.exists()
    assert status(hil)["small"] == {"name": "small", "running": False, "pid": None, "hosts": []}


def test_controllers_are_listed_with_where_their_login_is(hil: Any, project: Path) -> None:
    """The password itself is shown nowhere; it is in one file, which nobody else may read."""
    path = project / "inventory.yaml"
    more = "    controllers: {central: {role: system-controller, emulated: true}}\n"
    path.write_text(path.read_text() + more)
    kept = project / ".hil/labs/small/lab.json"
    kept.parent.mkdir(parents=True)
    kept.with_suffix(".new").write_text("left by a command that was killed, and for all to read")
    mask = os.umask(0)
    try:
        up = hil("up")
    finally:
        os.umask(mask)
    assert kept.stat().st_mode & 0o777 == 0o600
    (controller,) = status(hil)["small"]["controllers"]
    assert (controller["name"], controller["user"]) == ("central", "admin")
    assert Path(controller["password_file"]) == kept
    password = json.loads(kept.read_text())["controllers"]["central"]["password"]
    line = f"controller, {controller['url']} as admin, password in {kept}"
    for shown in (up.stdout, hil("status").stdout, hil("status", "-o", "json").stdout):
        assert password not in shown
    assert line in up.stdout and line in hil("status").stdout
    user = {"name": "admin", "domain": {"name": "Default"}, "password": password}
    auth = {"identity": {"methods": ["password"], "password": {"user": user}}}
    request = urllib.request.Request(
        f"{controller['url']}/auth/tokens",
        json.dumps({"auth": auth}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 201


def test_registries_are_listed_and_not_kept_running(hil: Any, project: Path) -> None:
    path = project / "inventory.yaml"
    more = "    registries: {ours: {emulated: true}, theirs: {url: 'https://registry.local:9001'}}\n"
    path.write_text(path.read_text() + more)
    shown = hil("up").stdout
    assert "  ours    registry, started by each run that pushes to it\n" in shown
    assert "  theirs  registry, https://registry.local:9001\n" in shown
    assert status(hil)["small"]["registries"] == [
        {"name": "ours", "url": None},
        {"name": "theirs", "url": "https://registry.local:9001"},
    ]


def test_second_up_of_the_same_lab_is_refused_and_under_another_name_is_not(hil: Any) -> None:
    hil("up")
    again = hil("up")
    assert isinstance(again.exception, ConfigurationError)
    assert "running already" in again.exception.message
    assert hil("up", "--as", "second").exit_code == 0
    entries = status(hil)
    ports = [host["port"] for entry in entries.values() for host in entry["hosts"]]
    assert len(set(ports)) == 4
    assert hil("down", "--all").stdout == "second: stopped\nsmall: stopped\n"


def test_cards_are_as_they_were_left_even_by_a_killed_lab(hil: Any, project: Path) -> None:
    inventory = load_inventory(project / "inventory.yaml")
    hil("up")
    lab = background_lab(inventory)
    bench = lab.attach(inventory).bench
    assert bench is not None
    assert bench.oracle("left/card0")["flash_count"] == 12
    bench.fit("left/card0", {"flash_count": 40})
    runtime = lab.doors().runtime
    pid = lab.pid()
    assert pid is not None
    watched = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PIDFD, watched, os.WEXITED)
    os.close(watched)
    assert not status(hil)["small"]["running"]
    assert hil("up").exit_code == 0
    assert not runtime.exists()
    bench = lab.attach(inventory).bench
    assert bench is not None
    assert bench.oracle("left/card0")["flash_count"] == 40
    hil("down")
    hil("down", "--forget")
    assert background_labs(inventory) == []


def test_stale_pid_file_with_the_id_of_another_process_deceives_nobody(project: Path) -> None:
    lab = BackgroundLab(project / ".hil/labs/small")
    lab.directory.mkdir(parents=True)
    (lab.directory / "pid").write_text(f"{os.getpid()}\n")
    assert lab.pid() is None
    assert lab.down() is False


def test_closing_an_attached_lab_leaves_it_running(hil: Any, project: Path) -> None:
    inventory = load_inventory(project / "inventory.yaml")
    hil("up")
    lab = background_lab(inventory)
    with lab.attach(inventory) as attached:
        assert attached.access("left") is not None
    assert lab.pid() is not None


def test_lab_without_emulated_hosts_cannot_be_kept_up(tmp_path: Path) -> None:
    file = tmp_path / "inventory.yaml"
    file.write_text("version: 1\ndefault_lab: here\nlabs: {here: {hosts: {me: {local: true}}}}\n")
    result = CliRunner().invoke(app, ["up", "--inventory", str(file)])
    assert isinstance(result.exception, ConfigurationError)
    assert "emulated" in result.exception.message


@pytest.fixture
def away(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that no command may touch."""
    directory = tmp_path_factory.mktemp("away")
    (directory / "file").write_text("precious")
    return directory


def test_a_record_that_names_another_directory_does_no_harm(hil: Any, project: Path, away: Path) -> None:
    hil("up")
    lab = background_lab(load_inventory(project / "inventory.yaml"))
    kept = lab.directory / "lab.json"
    runtime = lab.doors().runtime
    kept.write_text(kept.read_text().replace(str(runtime), str(away)))
    assert hil("down").stdout == "small: stopped\n"
    assert (away / "file").read_text() == "precious"
    # Nor one that leads there by a link with the name of a lab's own.
    hil("up")
    link = away.parent / "hil-lab-link"
    link.symlink_to(away)
    kept.write_text(kept.read_text().replace(str(lab.doors().runtime), str(link)))
    hil("down")
    assert (away / "file").read_text() == "precious"


@pytest.mark.parametrize("content", ["", "[]", "5", "{}", '{"lab": 5}', '{"lab": "small", "pid": "x"}', "{"])
def test_a_damaged_record_is_told_and_the_lab_can_still_be_stopped(
    hil: Any, project: Path, content: str
) -> None:
    hil("up")
    lab = background_lab(load_inventory(project / "inventory.yaml"))
    whole = (lab.directory / "lab.json").read_text()
    (lab.directory / "lab.json").write_text(content)
    entry = status(hil)["small"]
    assert entry["running"]
    assert "does not say where the lab 'small' is reached" in entry["error"]
    assert "hil lab down small" in hil("status").stdout
    assert hil("down").stdout == "small: stopped\n"
    assert lab.pid() is None
    assert not Path(json.loads(whole)["control"]).parent.exists()


def test_a_directory_that_cannot_be_used_is_told(hil: Any, project: Path) -> None:
    (project / ".hil").write_text("a file in the way")
    for words in (["up"], ["status"]):
        result = hil(*words)
        assert not isinstance(result.exception, (OSError, ValueError)), result.exception
    result = hil("up")
    assert isinstance(result.exception, InfrastructureError)
    assert "cannot be used: Not a directory" in str(result.exception)


def test_a_host_that_the_running_lab_has_not_is_told(hil: Any, project: Path) -> None:
    hil("up")
    file = project / "inventory.yaml"
    running = background_lab(load_inventory(file))
    file.write_text(file.read_text().replace("      right:\n", "      middle:\n"))
    with pytest.raises(ConfigurationError, match="has no host middle") as caught:
        running.attach(load_inventory(file)).access("middle")
    assert "hil lab down small; hil lab up small" in caught.value.hint


@pytest.mark.parametrize("command", ["status", "down"])
def test_a_lab_that_there_never_was_is_no_success(hil: Any, command: str) -> None:
    result = hil(command, "smal")
    assert isinstance(result.exception, ConfigurationError)
    assert "Did you mean 'small'?" in result.exception.hint


@pytest.mark.parametrize("name", ["../small", "a/b", "..", ".hidden", "a b", "a;b", "", "a\n"])
def test_name_stays_below_the_labs_directory(project: Path, name: str) -> None:
    with pytest.raises(ConfigurationError):
        background_lab(load_inventory(project / "inventory.yaml"), name)
