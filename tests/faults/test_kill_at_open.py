"""The registry killed while it opens a chosen file of its store, and what no client then sees."""

import itertools
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.lab_bench import IMAGE, NEWER, LabBench
from support.processes import alive, wait_until

from harness.errors import BlockedError, DeadlineError
from harness.faults.openings import HeldOpening
from harness.faults.registry_actions import registry_action
from harness.faults.registry_actions.own_store_faults import KillsAtOpening

LAYER = IMAGE.layers[0]
ACCEPT = IMAGE.manifest.media_type


def struck(bench: LabBench, what: str, request: Callable[[], object]) -> str:
    """Fire at the opening of ``what`` in what ``request`` does; return what was done."""
    action = registry_action(f"kill-at-open:{what}")
    assert isinstance(action, KillsAtOpening)
    action.check(bench)
    try:
        assert action.fire(bench, None) == f"lie in wait for the opening of a {what}"
        with ThreadPoolExecutor(1) as pool:
            sent = pool.submit(request)
            said = action.wait()
            with pytest.raises(OSError, match=r"(?i)reset|closed|eof|broken"):
                sent.result(30)
        return said
    finally:
        action.undo(bench)
        action.undo(bench)


def get(bench: LabBench, tag: str = "v1") -> int:
    return bench.raw.ask("GET", f"/v2/a/b/manifests/{tag}", Accept=ACCEPT)[0]


def test_a_manifest_of_no_bytes_that_every_later_push_believes(own_store_bench: LabBench) -> None:
    bench = own_store_bench
    for blob in IMAGE.blobs():
        bench.raw.push_blob("a/b", blob)
    before = bench.registry.instance
    assert before
    said = struck(bench, "manifest-blob", lambda: bench.raw.push_manifest("a/b", IMAGE.manifest, "v1"))
    after = bench.registry.instance
    assert after
    assert re.fullmatch(
        rf"restarted the registry by KILL: process {before.pid} gave way to {after.pid} after [0-9.]+ s "
        rf"while the opening of a manifest-blob was held; it was about to write .*/{IMAGE.digest[7:]}/data",
        said,
    )
    # Fact sheet of the registry, section 3: 404 after the restart; a re-push is believed, and GET is 500.
    assert bench.data(IMAGE.digest).read_bytes() == b""
    assert get(bench) == 404
    assert bench.push_what_is_missing() == 201
    assert get(bench) == 500
    assert bench.tag_link().read_text() == IMAGE.digest


def test_a_layer_link_of_no_bytes_blocks_those_who_ask_first(own_store_bench: LabBench) -> None:
    bench = own_store_bench
    struck(bench, "layer-link", lambda: bench.raw.push_blob("a/b", LAYER))
    assert bench.link(LAYER.digest).read_bytes() == b""
    assert bench.raw.head(f"/v2/a/b/blobs/{LAYER.digest}") == 500
    # An upload anyway heals it, as dockerd and skopeo do.
    bench.raw.push("a/b", "v1", IMAGE)
    assert get(bench) == 200


def test_a_new_tag_is_left_empty_and_an_old_one_whole(own_store_bench: LabBench) -> None:
    bench = own_store_bench
    bench.raw.push("a/b", "v0", IMAGE)
    bench.raw.push_blob("a/b", NEWER.config)
    # The kernel asks for permission before it truncates: what was acknowledged stays.
    struck(bench, "tag-link", lambda: bench.raw.push_manifest("a/b", NEWER.manifest, "v0"))
    assert bench.tag_link("v0").read_text() == IMAGE.digest
    assert get(bench, "v0") == 200
    struck(bench, "tag-link", lambda: bench.raw.push_manifest("a/b", NEWER.manifest, "v1"))
    assert bench.tag_link().read_bytes() == b""
    assert get(bench) == 500
    assert bench.push_what_is_missing(NEWER) == 201
    assert get(bench) == 200


def test_reading_is_not_held(own_store_bench: LabBench) -> None:
    bench = own_store_bench
    bench.raw.push("a/b", "v1", IMAGE)
    action = registry_action("kill-at-open:tag-link")
    assert isinstance(action, KillsAtOpening)
    action.fire(bench, None)
    assert get(bench) == 200
    assert bench.tag_link().read_text() == IMAGE.digest, "nor are others, who read the truth"
    with pytest.raises(DeadlineError, match=r"Waited 0.1 s for process \d+ to open a file .*tags"):
        action.wait(0.1)
    action.undo(bench)
    assert len(bench.registry.restarts) == 0
    assert bench.push_what_is_missing() == 201


WRITER = "import sys; sys.stdin.readline(); open(sys.argv[1], 'w').write('written')"


def writer(path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE)


def go(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin
    process.stdin.write(b"\n")
    process.stdin.close()


def test_who_is_held_goes_on_when_the_holder_is_closed_or_fails(own_store_bench: LabBench) -> None:
    root = Path(own_store_bench.lab.registry.storage)
    for number in range(2):
        path = root / f"file{number}"

        def strike(path: str, let_go: object) -> None:
            raise DeadlineError("it did not start again")

        with writer(path) as process:
            opening = HeldOpening(root, process.pid, re.compile(path.name), strike)
            go(process)
            with pytest.raises(DeadlineError, match="did not start again"):
                opening.wait(30)
            opening.close()
            assert process.wait(30) == 0
        assert path.read_text() == "written"


def test_closing_after_the_strike_touches_no_file_that_was_opened_since(own_store_bench: LabBench) -> None:
    root = Path(own_store_bench.lab.registry.storage)
    with writer(root / "file") as process:
        opening = HeldOpening(root, process.pid, re.compile("file"), lambda path, let_go: let_go())
        go(process)
        assert opening.wait(30) == "file"
        opening._thread.join(30)
    with ExitStack() as opened:
        # The kernel gives the lowest numbers that are free. Either end of each can be written to.
        pairs = [socket.socketpair() for _ in range(4)]
        ends = [opened.enter_context(end) for end in itertools.chain(*pairs)]
        opening.close()
        opening.close()
        for end in ends:
            end.setblocking(False)
            with pytest.raises(BlockingIOError):
                end.recv(1)


HOLDER = """
import re, sys, threading
from pathlib import Path
from harness.faults.openings import HeldOpening
def strike(path, let_go):
    print("held", flush=True)
    threading.Event().wait()
HeldOpening(Path(sys.argv[1]), int(sys.argv[2]), re.compile("file"), strike)
print("armed", flush=True)
threading.Event().wait()
"""


def test_who_is_held_goes_on_when_the_harness_is_killed(own_store_bench: LabBench) -> None:
    root = Path(own_store_bench.lab.registry.storage)
    with writer(root / "file") as process:
        argv = [sys.executable, "-c", HOLDER, str(root), str(process.pid)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as harness:
            assert harness.stdout
            try:
                assert harness.stdout.readline() == b"armed\n"
                go(process)
                assert harness.stdout.readline() == b"held\n"
                assert process.poll() is None
            finally:
                harness.kill()
        assert process.wait(30) == 0
    assert (root / "file").read_text() == "written"


CRASHING = """
import sys, threading
from pathlib import Path
from support.lab_bench import LabBench
from harness.faults.own_store import OwnStore
from harness.faults.registry_actions import registry_action
from harness.registry.assembled import RegistryLab
from harness.registry.configuration import RegistrySettings
store = OwnStore(4 << 20)
lab = RegistryLab(Path(sys.argv[1]), RegistrySettings(storage=store.folder), program=Path(sys.argv[2]))
lab.start()
bench = LabBench(lab)
registry_action("kill-at-open:tag-link").fire(bench, None)
registry_action(sys.argv[3]).fire(bench, None)
print(store.folder, lab.registry._process.pid, store._watchdog._process.pid, flush=True)
threading.Event().wait()
"""


@pytest.mark.parametrize("name", ["pause", "disk-full", "restart"])
def test_nothing_stays_where_the_harness_is_killed(tmp_path: Path, program: Path, name: str) -> None:
    argv = [sys.executable, "-c", CRASHING, str(tmp_path), str(program), name]
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=environ) as harness:
        assert harness.stdout
        folder, registry, watchdog = harness.stdout.readline().decode().split()
        assert Path(folder).is_mount()
        assert alive(int(registry))
        harness.send_signal(signal.SIGKILL)
    wait_until(lambda: not Path(folder).exists(), "the unmounting")
    wait_until(lambda: not alive(int(registry)), "the registry's end")
    wait_until(lambda: not alive(int(watchdog)), "the watchdog's end")


def test_without_a_store_of_its_own_it_is_blocked(bench: LabBench) -> None:
    with pytest.raises(BlockedError, match="is not on a file system of its own") as caught:
        registry_action("kill-at-open:layer-link").check(bench)
    assert "OwnStore" in caught.value.hint


def test_without_root_it_is_blocked(bench: LabBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(BlockedError, match="only root may"):
        registry_action("kill-at-open:layer-link").check(bench)


def test_a_kernel_that_does_not_allow_it_is_told(own_store_bench: LabBench) -> None:
    # What a process without the capability is told, by the kernel itself.
    code = (
        "from harness.faults.openings import check_can_hold; from pathlib import Path; import sys\n"
        "check_can_hold(Path(sys.argv[1]))"
    )
    root = own_store_bench.lab.registry.storage
    argv = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]
    done = subprocess.run(
        [*argv, sys.executable, "-c", code, root], capture_output=True, text=True, timeout=60, check=False
    )
    assert "BlockedError: The opening of files cannot be held here" in done.stderr
    assert "Operation not permitted" in done.stderr
