"""A real registry that a service manager keeps on a host behind a real SSH server; the managers are shims."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.openssh import OpenSsh
from support.processes import alive, wait_until
from support.raw_push import RawRegistry

from harness.errors import BlockedError, DeadlineError, InfrastructureError, RefusedError
from harness.hosts.access import Access
from harness.hosts.protocol import Host
from harness.hosts.ssh import SshHost
from harness.registry.configuration import RegistrySettings, configuration_text
from harness.registry.host_service import CHANGED_AT_MOST, PAUSE_AT_MOST, HostRegistry
from harness.registry.images import ImageRecipe, make_image, sized_layers
from harness.registry.managers import Hands, StarlingX, Systemd
from harness.registry.ports import free_port
from harness.registry.reference import parse_reference
from harness.registry.store import HostStore
from harness.registry.truth import Expected, TruthState
from harness.registry.truth_store import StoreTruth
from harness.registry.wire import Endpoint

IMAGE = make_image(ImageRecipe(sized_layers(3, 5000)))
REFERENCE = parse_reference("a/b:v1")

#: What both managers share: one process, its id in a file, its log behind a syslog prefix.
COMMON = """\
#!/bin/sh
S={state}
alive() {{ [ -s $S/pid ] && [ "$(sed 's/.*) //' /proc/$(cat $S/pid)/stat 2>/dev/null | cut -c1)" != Z ] &&
    kill -0 $(cat $S/pid) 2>/dev/null; }}
gone() {{ while alive; do sleep 0.01; done; rm -f $S/pid; }}
start() {{
    alive && return
    rm -f $S/fifo $S/pid; mkfifo $S/fifo
    setsid sed -u "s/^/{prefix}/" <$S/fifo >>$S/log 2>/dev/null &
    # It answers only once the file says who it is.
    setsid sh -c 'until [ -s "$0" ]; do sleep 0.01; done; exec env "$@"' $S/pid \
        ${{1:+"$1"}} {program} serve {config} </dev/null >$S/fifo 2>&1 &
    echo $! >$S/pid
}}
stop() {{ alive && kill -TERM $(cat $S/pid) && kill -CONT $(cat $S/pid); gone; }}
echo "$0 $*" | sed "s,.*/,," >>$S/calls
"""
#: A unit is read again by daemon-reload alone.
SYSTEMCTL = """\
setting() { sed -n "s/^Environment='\\(.*\\)'$/\\1/p" $S/loaded 2>/dev/null; }
case "$1" in
daemon-reload) cat $S/units/docker-registry.service.d/*.conf >$S/loaded 2>/dev/null; : ;;
show) alive && echo "MainPID=$(cat $S/pid)" || echo MainPID=0 ;;
start) start "$(setting)" ;;
stop) stop ;;
restart) stop; start "$(setting)" ;;
*) echo "Unknown command verb $1." >&2; exit 1 ;;
esac
"""
#: Says at once that all is well, and does it later.
SM_RESTART_SAFE = """\
[ "$1 $2" = "service docker-distribution" ] || exit 1
(set -x; sleep 0.2; stop; start) </dev/null >/dev/null 2>>$S/course &
"""
JOURNALCTL = "cat $S/log\n"
PREFIXES = {
    "systemd": "2026-11-30T10:00:00.123456+0000 bench docker-registry[77]: ",
    "starlingx": "2026-11-30T10:00:00.123 controller-0 registry[157387]: info ",
}


@dataclass
class Kept:
    """The registry of one test, and what its host holds."""

    registry: HostRegistry
    host: Host
    state: Path
    kind: str

    @property
    def raw(self) -> RawRegistry:
        return RawRegistry(self.registry.endpoint.url)

    def calls(self) -> list[str]:
        return (self.state / "calls").read_text().splitlines()

    def changes(self) -> list[str]:
        return [call for call in self.calls() if " show " not in call and not call.startswith("journalctl")]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Iterator[OpenSsh]:
    made = OpenSsh(tmp_path_factory.mktemp("server"), path=f"{programs}:{os.environ['PATH']}")
    try:
        made.start()
        yield made
    finally:
        made.stop()


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def make(kind: str, tmp_path: Path, program: Path, programs: Path, server: OpenSsh) -> Kept:
    state = tmp_path / "host"
    (state / "units").mkdir(parents=True)
    (state / "log").touch()
    port = free_port()
    for name, read_only in (("runtime_config.yml", False), ("readonly_config.yml", True)):
        text = configuration_text(
            RegistrySettings(),
            port=port,
            storage=state / "store",
            secret="lab",
            read_only=read_only,
        )
        (state / name).write_text(text)
    (state / "config.yml").symlink_to(state / "runtime_config.yml")
    common = COMMON.format(state=state, prefix=PREFIXES[kind], program=program, config=state / "config.yml")
    for name, text in (
        ("systemctl", SYSTEMCTL),
        ("journalctl", JOURNALCTL),
        ("sm-restart-safe", SM_RESTART_SAFE),
    ):
        write_program(programs / name, common + text)
    host = SshHost(
        "bench",
        Access("127.0.0.1", server.port, server.user, server.known_hosts, key_file=server.key_file),
    )
    hands = Hands(host)
    manager: Systemd | StarlingX
    if kind == "systemd":
        manager = Systemd(hands, config=str(state / "config.yml"), runtime=str(state / "units"))
    else:
        manager = StarlingX(hands, folder=str(state), pid_file=str(state / "pid"), log=str(state / "log"))
    endpoint = Endpoint(f"http://127.0.0.1:{port}")
    registry = HostRegistry(hands, manager, endpoint, str(state / "store"), program=str(program))
    return Kept(registry, host, state, kind)


@pytest.fixture(params=["systemd", "starlingx"])
def kept(
    request: pytest.FixtureRequest, tmp_path: Path, program: Path, programs: Path, server: OpenSsh
) -> Iterator[Kept]:
    made = make(request.param, tmp_path, program, programs, server)
    try:
        # Not through the object: a service manager has started it long ago.
        verb = ["systemctl", "start", "docker-registry.service"]
        Hands(made.host).do(
            verb if made.kind == "systemd" else ["sm-restart-safe", "service", "docker-distribution"],
            "set up",
        )
        try:
            made.registry.wait_ready(deadline=20)
        except DeadlineError as error:
            for told in ("calls", "course", "log"):
                text = (made.state / told).read_text() if (made.state / told).exists() else "is not there"
                error.add_note(f"{told}: {text}")
            raise
        yield made
    finally:
        made.registry.close()
        made.host.close()
        # A restart that was asked for may still be under way there.
        server.end_programs()


def waiting(kept: Kept) -> int:
    """Return the process group of the one undo that waits on the host."""
    ((group, _),) = kept.registry._undo._waiting.values()
    return group


def let_time_pass(group: int, seconds: int) -> None:
    """End the sleep of an undo on the host, as if its ``seconds`` were over."""
    sleeping = ["pkill", "-g", str(group), "-x", "-f", f"sleep {seconds}"]
    wait_until(lambda: subprocess.run(sleeping).returncode == 0, f"sleep {seconds} in group {group}")


def test_a_restart_is_waited_for_and_tells_both_processes(kept: Kept) -> None:
    kept.raw.push("a/b", "v1", IMAGE)
    before = kept.registry.instance
    happened: list[str] = []
    done = kept.registry.restart(held="PUT manifest", between=lambda: happened.append("between"))
    assert happened == ["between"]
    assert done.before == before
    assert (done.after, done.after.number) == (kept.registry.instance, 2)
    assert done.after.pid != done.before.pid
    assert done.held == "PUT manifest"
    assert done.how == {"systemd": "systemctl restart", "starlingx": "sm-restart-safe"}[kept.kind]
    assert kept.raw.ask("GET", "/v2/a/b/tags/list")[0] == 200
    assert kept.registry.restart().after.number == 3


def test_killed_and_started_again_by_whoever_does_that(kept: Kept) -> None:
    before = kept.registry.instance
    assert before
    if kept.kind == "starlingx":
        kept.registry.kill()
        assert kept.registry.instance is None
        with pytest.raises(DeadlineError, match="it does not run"):
            kept.registry.wait_ready(deadline=0.05)
        with pytest.raises(InfrastructureError, match="does not run"):
            kept.registry.restart()
        with pytest.raises(BlockedError, match="service manager decides that"):
            kept.registry.start()
        return
    done = kept.registry.restart("KILL")
    assert (done.before, done.how) == (before, "KILL")
    assert "systemctl start docker-registry.service" in kept.changes()


def test_stopping_is_left_to_a_service_manager_that_would_undo_it(kept: Kept) -> None:
    if kept.kind == "starlingx":
        with pytest.raises(BlockedError, match="not stopped on its own"):
            kept.registry.stop()
        return
    kept.registry.stop()
    assert kept.registry.instance is None
    kept.registry.close()
    assert kept.registry.instance is not None, "what was stopped runs again afterwards"


def test_read_only_and_back(kept: Kept) -> None:
    kept.raw.push("a/b", "v1", IMAGE)
    assert kept.registry.read_only(True).after.read_only
    assert kept.raw.ask("POST", "/v2/a/b/blobs/uploads/", b"")[0] == 405
    assert kept.registry.restart().after.read_only
    assert not kept.registry.read_only(False).after.read_only
    kept.raw.push("a/b", "v2", IMAGE)


def test_what_was_left_read_only_takes_writes_after_close(kept: Kept) -> None:
    kept.registry.read_only(True)
    kept.registry.close()
    kept.raw.push("a/b", "v1", IMAGE)


def test_a_paused_one_goes_on_even_if_nobody_asks(kept: Kept) -> None:
    instance = kept.registry.instance
    assert instance

    def state_of() -> str:
        return Path(f"/proc/{instance.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def paused() -> bool:
        return state_of() == "T"  # a moment after the signal

    kept.registry.pause()
    wait_until(paused, "the pause")
    kept.registry.resume()
    kept.registry.wait_ready()
    kept.registry.pause()
    wait_until(paused, "the second pause")
    let_time_pass(waiting(kept), PAUSE_AT_MOST)
    wait_until(lambda: not paused(), "the host to let it go on")
    kept.registry.wait_ready()
    kept.registry.pause()
    assert kept.registry.restart().after.pid != instance.pid, "a paused one can be restarted"


def test_garbage_collection_on_the_host(kept: Kept) -> None:
    kept.raw.push("a/b", "v1", IMAGE)
    other = make_image(ImageRecipe(sized_layers(1, 2000)))
    kept.raw.push_blob("a/b", other.layers[0])
    done = kept.registry.garbage_collect()
    assert done.exit_code == 0
    assert f"blob eligible for deletion: {other.layers[0].digest}" in done.text
    assert [each.after.read_only for each in done.restarts] == [True, False]
    if kept.kind == "starlingx":
        assert (kept.state / "config.yml").readlink().name == "runtime_config.yml"
    kept.raw.push("a/b", "v2", IMAGE)
    assert len(kept.registry.garbage_collect(around="restart", dry_run=True).restarts) == 1


def test_logs_come_from_where_the_host_keeps_them(kept: Kept) -> None:
    mark = kept.registry.log_mark()
    kept.raw.ask("GET", "/v2/a/b/manifests/none")
    end = time.monotonic() + 10
    while not (
        found := [e for e in kept.registry.logs(mark) if e.fields.get("err.code") == "manifest unknown"]
    ):
        assert time.monotonic() < end
    assert found[0].host == {"systemd": "bench", "starlingx": "controller-0"}[kept.kind]
    assert found[0].form == "logfmt"
    assert len(kept.registry.logs()) > len(kept.registry.logs(mark))
    (kept.state / "log").write_text("")  # rotated
    kept.registry.restart()
    assert kept.registry.logs("100000")


def test_the_store_is_read_and_hashed_over_there(kept: Kept) -> None:
    kept.raw.push("a/b", "v1", IMAGE)
    kept.raw.push("c/d/e", "v1", IMAGE)
    truth = StoreTruth(HostStore(kept.host, kept.registry.storage))
    truth.check()
    expected = Expected(IMAGE.digest, IMAGE.config.digest)
    found = truth.image(REFERENCE, expected)
    assert (found.state, found.digest) == (TruthState.COMPLETE, IMAGE.digest)
    assert found.hashed == sum(blob.size for blob in (*IMAGE.blobs(), IMAGE.manifest))
    assert truth.catalogue() == ["a/b", "c/d/e"]
    assert (truth.tags("a/b"), truth.tags("none")) == (["v1"], [])
    base = kept.state / "store/docker/registry/v2"
    links = base / "repositories/a/b/_layers/sha256"
    data = [base / "blobs/sha256" / layer.digest[7:9] / layer.digest[7:] / "data" for layer in IMAGE.layers]
    data[0].write_bytes(b"x" + data[0].read_bytes()[1:])
    data[1].unlink()
    (links / IMAGE.layers[2].digest[7:] / "link").write_bytes(b"")
    (links / IMAGE.config.digest[7:] / "link").unlink()
    damaged = truth.image(REFERENCE, expected)
    assert damaged.state is TruthState.CORRUPT
    assert {each.which: (each.state.value, each.reason.partition(",")[0]) for each in damaged.findings} == {
        IMAGE.layers[0].digest: ("CORRUPT", f"{IMAGE.layers[0].size} bytes of {IMAGE.layers[0].size}"),
        IMAGE.layers[1].digest: ("PARTIAL", "its content is missing"),
        IMAGE.layers[2].digest: ("CORRUPT", "its link in the repository is empty"),
        IMAGE.config.digest: ("PARTIAL", "its link in the repository is missing"),
    }
    (base / "repositories/a/b/_manifests/tags/v1/current/link").write_bytes(b"")
    assert truth.image(REFERENCE).why == "tag v1: the tag's link is empty"
    assert truth.image(replace(REFERENCE, tag="v9")).state is TruthState.ABSENT


def test_a_command_that_fails_says_what_it_said(kept: Kept) -> None:
    with pytest.raises(InfrastructureError, match="Unknown command verb frobnicate"):
        Hands(kept.host).do(["systemctl", "frobnicate"], "try it")


def test_nothing_is_done_without_a_permit(kept: Kept) -> None:
    with pytest.raises(RefusedError):
        kept.host.run(["systemctl", "restart", "docker-registry.service"])
    with pytest.raises(RefusedError):
        kept.host.run(["kill", "-KILL", "1"])


def test_sudo_stands_before_every_command(kept: Kept, programs: Path) -> None:
    write_program(
        programs / "lab-sudo", f'#!/bin/sh\necho "sudo $*" >>{kept.state}/calls\nshift\nexec "$@"\n'
    )
    assert Hands(kept.host, ("lab-sudo", "-n")).do(["true"], "try it").exit_code == 0
    assert "sudo -n true" in kept.calls()


def test_a_host_that_is_gone_makes_the_truth_unreadable(tmp_path: Path, server: OpenSsh) -> None:
    access = Access("127.0.0.1", free_port(), server.user, server.known_hosts, key_file=server.key_file)
    truth = StoreTruth(HostStore(SshHost("bench", access), str(tmp_path))).image(REFERENCE)
    assert truth.state is TruthState.UNREADABLE
    assert "bench" in truth.why


# -- undone where we are gone ----------------------------------------------------------------------------

#: Another harness, which disturbs the registry and is killed.
HARNESS = """
import json, sys, threading
from pathlib import Path
from harness.hosts.access import Access
from harness.hosts.ssh import SshHost
from harness.registry.host_service import HostRegistry
from harness.registry.managers import Hands, StarlingX, Systemd
from harness.registry.wire import Endpoint
kind, fault, url, state, port, user, known_hosts, key_file = json.loads(sys.argv[1])
hands = Hands(SshHost("bench", Access("127.0.0.1", port, user, Path(known_hosts), key_file=Path(key_file))))
manager = (
    Systemd(hands, config=state + "/config.yml", runtime=state + "/units") if kind == "systemd"
    else StarlingX(hands, folder=state, pid_file=state + "/pid", log=state + "/log")
)
registry = HostRegistry(hands, manager, Endpoint(url), state + "/store")
registry.read_only(True) if fault == "read_only" else getattr(registry, fault)()
((group, _),) = registry._undo._waiting.values()
print(group, flush=True)
threading.Event().wait()
"""


@pytest.mark.parametrize("fault", ["stop", "pause", "read_only"])
def test_the_host_undoes_it_where_the_harness_is_killed(kept: Kept, server: OpenSsh, fault: str) -> None:
    if (kept.kind, fault) == ("starlingx", "stop"):
        # There is nothing to undo: a service manager that would do it itself is not asked.
        with pytest.raises(BlockedError, match="not stopped on its own"):
            kept.registry.stop()
        assert kept.changes() == ["sm-restart-safe service docker-distribution"]
        return
    paths = map(str, (server.known_hosts, server.key_file))
    url = kept.registry.endpoint.url
    described = json.dumps([kept.kind, fault, url, str(kept.state), server.port, server.user, *paths])
    with subprocess.Popen([sys.executable, "-c", HARNESS, described], stdout=subprocess.PIPE) as harness:
        assert harness.stdout
        group = int(harness.stdout.readline())
        harness.kill()
    let_time_pass(group, PAUSE_AT_MOST if fault == "pause" else CHANGED_AT_MOST)

    def writes() -> bool:
        try:
            return kept.raw.ask("POST", "/v2/a/b/blobs/uploads/", b"")[0] == 202
        except OSError:
            return False

    wait_until(writes, f"the host to undo {fault}")
    assert kept.registry.instance


@pytest.mark.parametrize("fault", ["stop", "pause", "read_only"])
def test_what_was_undone_in_time_is_not_undone_again(kept: Kept, fault: str) -> None:
    undo = kept.registry._undo
    if (kept.kind, fault) == ("starlingx", "stop"):
        with pytest.raises(BlockedError, match="not stopped on its own"):
            kept.registry.stop()
        assert undo._waiting == {}, "what was not done is not undone"
        return
    kept.registry.read_only(True) if fault == "read_only" else getattr(kept.registry, fault)()
    group = waiting(kept)
    assert alive(group)
    {
        "stop": kept.registry.start,
        "pause": kept.registry.resume,
        "read_only": lambda: kept.registry.read_only(False),
    }[fault]()
    assert undo._waiting == {}
    wait_until(lambda: not alive(group), "the end of what waits on the host")
