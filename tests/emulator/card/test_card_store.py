"""What the card keeps on disk: it survives a restart, and a kill at any instant leaves what loads."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.emulator.card import CardState, CardStore
from harness.errors import InfrastructureError

# Saves states with growing flash counts for ever; page and count belong together. Says when it begins.
WRITER = """
import sys
from pathlib import Path
from harness.emulator.card import CardState, CardStore
store = CardStore(Path(sys.argv[1]))
print("ready", flush=True)
for count in range(1, 1_000_000):
    cancelled = frozenset({count % 128})
    store.save(CardState(flash_count=count, user_page=b"%d" % count * 5000, sr_cancelled=cancelled))
"""


def test_a_state_survives_a_restart(tmp_path: Path, make_bench, image, root_hash) -> None:
    spec_store = CardStore(tmp_path)
    bench = make_bench(CardState(sr_root=root_hash("A")), store=spec_store)
    assert bench.flash(image("A/csk0")) == ""
    assert bench.flash(image("cancel-A-csk1")) == ""
    bench.card.moves_to = "0000:5e:00.0"
    bench.reset()
    loaded = CardStore(tmp_path).load()
    assert loaded == bench.card.state
    again = make_bench(loaded, store=CardStore(tmp_path))
    assert again.card.bitstream_id == 0x23000410010311
    assert again.card.address == "0000:5e:00.0"
    assert again.flash(image("A/csk1")) == "programming:hw-error"  # cancelled, and in force after the restart


def test_nothing_saved_is_none(tmp_path: Path) -> None:
    assert CardStore(tmp_path / "new").load() is None


def test_pages_that_no_state_refers_to_are_removed(tmp_path: Path) -> None:
    store = CardStore(tmp_path)
    for number in range(5):
        store.save(CardState(user_page=bytes([number]) * 100))
    # factory page, both BMC pages (the same bytes), and the one user page
    assert len(list(tmp_path.glob("*.page"))) == 3
    assert store.load() == CardState(user_page=b"\x04" * 100)


def test_a_dead_process_amid_copying_leaves_the_page_erased(tmp_path: Path, make_bench, image) -> None:
    """What is on disk while an update copies is what a power cut there leaves."""
    bench = make_bench(CardState(user_page=image("A/csk1")[0x400:]), store=CardStore(tmp_path))
    bench.card.hold("copying")
    bench.start(image("A/csk0"))
    bench.reach("copying")
    loaded = CardStore(tmp_path).load()
    assert loaded is not None
    assert loaded.user_page == b""
    assert make_bench(loaded).card.running_page == "factory"
    bench.card.release()


@pytest.mark.parametrize("seed", range(8))
def test_a_kill_at_any_instant_leaves_a_whole_state(tmp_path: Path, seed: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        delay = random.Random(seed).uniform(0.0, 0.03)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(delay)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=10)
    state = CardStore(tmp_path).load()
    if state is None:  # killed before the first state was whole
        assert not (tmp_path / "card.json").exists()
        return
    assert state.user_page == b"%d" % state.flash_count * 5000
    assert state.sr_cancelled == {state.flash_count % 128}
    store = CardStore(tmp_path)  # and it can be written on
    store.save(CardState(flash_count=7))
    assert store.load() == CardState(flash_count=7)
    assert len(list(tmp_path.iterdir())) == 3  # the state and two pages: nothing half written is left


def test_every_step_of_a_save_leaves_the_old_state_or_the_new(tmp_path: Path, monkeypatch) -> None:
    """Fails a save at each of its system calls in turn: what loads is never a mixture."""
    old, new = CardState(flash_count=1, user_page=b"old"), CardState(flash_count=2, user_page=b"new")
    calls = 0

    def failing(real, fail_at: int):
        def call(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls == fail_at:
                raise OSError(28, "No space left on device")
            return real(*arguments, **options)

        return call

    outcomes = set()
    for fail_at in range(1, 20):
        directory = tmp_path / str(fail_at)
        store = CardStore(directory)
        store.save(old)
        calls = 0
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", failing(os.fsync, fail_at))
            patched.setattr(Path, "replace", failing(Path.replace, fail_at))
            patched.setattr(Path, "open", failing(Path.open, fail_at))
            patched.setattr(Path, "unlink", failing(Path.unlink, fail_at))
            try:
                store.save(new)
                outcomes.add("saved")
            except InfrastructureError as error:
                assert "No space left" in error.message
                outcomes.add("failed")
        assert CardStore(directory).load() in (old, new)
        store.save(new)
        assert CardStore(directory).load() == new
    assert outcomes == {"saved", "failed"}


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": 2}', '{"format": 1}', '{"format": 1, "x": 2}']
)
def test_a_file_that_is_no_state_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / "card.json").write_text(content)
    with pytest.raises(InfrastructureError, match="could not be read"):
        CardStore(tmp_path).load()


def test_a_damaged_or_missing_page_is_told(tmp_path: Path) -> None:
    CardStore(tmp_path).save(CardState(user_page=b"content"))
    name = json.loads((tmp_path / "card.json").read_text())["user_page"]
    page = tmp_path / f"{name}.page"
    page.write_bytes(b"contenT")
    with pytest.raises(InfrastructureError, match="not what was written"):
        CardStore(tmp_path).load()
    page.unlink()
    with pytest.raises(InfrastructureError, match="a page is missing"):
        CardStore(tmp_path).load()
