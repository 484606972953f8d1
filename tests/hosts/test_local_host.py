"""The machine itself as a host: results, deadlines, permits."""

import hashlib
from pathlib import Path

import pytest

from harness.errors import DeadlineError, InfrastructureError, RefusedError
from harness.hosts.local import LocalHost
from harness.hosts.permits import Authority, Permit

CARDS = Authority("cards")


@pytest.fixture
def machine() -> LocalHost:
    return LocalHost("bench")


def permit(*argv: str) -> Permit:
    return CARDS.command("signal", "bench", argv, "test")


def test_a_command_gives_its_streams_and_its_exit_code(machine: LocalHost) -> None:
    argv = ("sh", "-c", "echo out; echo err >&2; exit 3")
    result = machine.run(argv, permit=permit(*argv))
    assert (result.exit_code, result.stdout, result.stderr) == (3, "out\n", "err\n")


def test_a_signal_gives_minus_one(machine: LocalHost) -> None:
    argv = ("sh", "-c", "kill -9 $$")
    result = machine.run(argv, permit=permit(*argv))
    assert result.exit_code == -1 and not result.lost


def test_output_is_given_as_it_comes(machine: LocalHost, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    seen: list[str] = []

    def on_output(text: str) -> None:
        seen.append(text)
        gate.touch()

    argv = ("sh", "-c", f"echo first; while [ ! -e {gate} ]; do :; done; echo second")
    assert machine.run(argv, permit=permit(*argv), on_output=on_output).stdout == "first\nsecond\n"
    assert seen == ["first\n", "second\n"]


def test_a_deadline_says_what_it_waited_for_and_last_saw_and_leaves_nothing(machine: LocalHost) -> None:
    argv = ("sh", "-c", "echo half way; sleep 60")
    with pytest.raises(DeadlineError, match=r"Waited 0\.3 s for .*sleep 60.* last .*half way"):
        machine.run(argv, permit=permit(*argv), deadline=0.3)


def test_a_command_without_permit_is_not_run(machine: LocalHost, tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        machine.run(["touch", str(tmp_path / "made")])
    assert not list(tmp_path.iterdir())


def test_put_writes_what_the_permit_names_and_nothing_else(machine: LocalHost, tmp_path: Path) -> None:
    target = str(tmp_path / "image.bin")
    allowed = CARDS.write("upload", "bench", target, hashlib.sha256(b"image").hexdigest(), "test")
    with pytest.raises(RefusedError):
        machine.put(b"other", target, permit=allowed)
    with pytest.raises(RefusedError):
        machine.put(b"image", f"{target}2", permit=allowed)
    assert not list(tmp_path.iterdir())
    machine.put(b"image", target, permit=allowed)
    assert Path(target).read_bytes() == b"image"


def test_a_file_that_changes_while_it_is_put_does_not_arrive(
    machine: LocalHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "source.bin", tmp_path / "image.bin"
    source.write_bytes(b"image")
    allowed = CARDS.write("upload", "bench", str(target), hashlib.sha256(b"image").hexdigest(), "test")

    def exchanging(self: Permit, *words: str) -> None:
        source.write_bytes(b"other")  # its hash was taken; now it is read

    monkeypatch.setattr(Permit, "check_write", exchanging)
    with pytest.raises(RefusedError, match="changed while it was read; it was removed"):
        machine.put(source, str(target), permit=allowed)
    assert not target.exists()


@pytest.mark.parametrize("path", ["/dev/watchdog", "/proc/self/root/dev/watchdog", "/sys/../dev/watchdog"])
def test_reading_opens_no_device_here_either(machine: LocalHost, path: str) -> None:
    with pytest.raises(RefusedError, match="may be a device"):
        machine.read(path)


def test_a_full_disk_is_named(machine: LocalHost) -> None:
    data = b"x" * 100_000
    full = CARDS.write("upload", "bench", "/dev/full", hashlib.sha256(data).hexdigest(), "test")
    with pytest.raises(InfrastructureError, match="No space left on device"):
        machine.put(data, "/dev/full", permit=full)


def test_read_list_and_readlink_raise_what_the_kernel_says(machine: LocalHost, tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"\x00\xff")
    (tmp_path / "a").symlink_to("b")
    assert machine.list(str(tmp_path)) == ["a", "b"]
    assert machine.read(str(tmp_path / "a")) == b"\x00\xff"
    assert machine.readlink(str(tmp_path / "a")) == str(tmp_path / "b")
    for ask in (machine.read, machine.list, machine.readlink):
        with pytest.raises(FileNotFoundError):
            ask(str(tmp_path / "missing"))


def test_an_image_is_got_byte_by_byte_or_the_reason_is_told(tmp_path: Path) -> None:
    curl = tmp_path / "curl"
    curl.write_text("#!/bin/sh\nprintf '\\000\\377%s' \"$4\"\n")
    curl.chmod(0o755)
    place = "http://controller:8080/device_images/a.bit"
    assert LocalHost(tools={"curl": str(curl)}).fetch(place) == b"\x00\xff" + place.encode()
    curl.write_text("#!/bin/sh\necho 'curl: (22) The requested URL returned error: 404' >&2\nexit 22\n")
    with pytest.raises(OSError, match="404"):
        LocalHost(tools={"curl": str(curl)}).fetch(place)
