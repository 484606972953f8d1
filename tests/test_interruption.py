"""Ctrl-C, SIGTERM and SIGHUP: obeyed where a run may end, put off where something is put back."""

import signal
import subprocess
import sys
import threading

import pytest

from harness.interruption import stopped_is_interrupted, uninterrupted


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def test_a_block_is_finished_before_ctrl_c_is_obeyed(capfd: pytest.CaptureFixture[str]) -> None:
    done = []
    with pytest.raises(KeyboardInterrupt):
        with uninterrupted("put the card back"):
            ctrl_c()
            done.append("put back")
        done.append("gone on")
    assert done == ["put back"]
    assert "ends when this is done: put the card back" in capfd.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()


def test_one_that_comes_amid_the_words_on_another_breaks_nothing_off(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A buffered stream cannot be written to by a handler that came while it was written to."""

    class Written:
        def write(self, text: str) -> int:
            raise RuntimeError("reentrant call inside <_io.BufferedWriter name='<stderr>'>")

    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted("put the card back"):
        monkeypatch.setattr(sys, "stderr", Written())
        ctrl_c()
        ctrl_c()
        done.append("put back")
    monkeypatch.undo()
    assert done == ["put back"]
    assert "(signal 2;" in capfd.readouterr().err


def test_nothing_happens_without_a_signal() -> None:
    before = signal.getsignal(signal.SIGINT)
    with uninterrupted("nothing"):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_the_third_is_obeyed_at_once() -> None:
    counted = []
    with pytest.raises(KeyboardInterrupt), uninterrupted("a long story"):
        for number in range(5):
            ctrl_c()
            counted.append(number)
    assert counted == [0, 1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_of_the_block_is_not_lost() -> None:
    with pytest.raises(KeyboardInterrupt) as caught, uninterrupted("fail"):
        ctrl_c()
        raise ValueError("of the block")
    assert isinstance(caught.value.__context__, ValueError)


def test_a_block_within_a_block_waits_for_the_outer_one() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt):
        with uninterrupted("outer"):
            with uninterrupted("inner"):
                ctrl_c()
                done.append("inner")
            done.append("outer")
        done.append("gone on")
    assert done == ["inner", "outer"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["sigterm", "sighup"])
def test_who_is_stopped_ends_as_by_ctrl_c_and_waits_as_then(number) -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), stopped_is_interrupted():
        with uninterrupted("put back"):
            signal.raise_signal(number)
            done.append("put back")
        done.append("gone on")
    assert done == ["put back"]
    assert signal.getsignal(number) == signal.SIG_DFL


def test_what_is_ignored_stays_ignored_as_nohup_wants_it() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopped_is_interrupted():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_sigterm_that_nobody_asked_for_keeps_its_meaning() -> None:
    script = (
        "import signal; from harness.interruption import uninterrupted\n"
        "with uninterrupted('sleep'): signal.raise_signal(signal.SIGTERM)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], timeout=60)
    assert done.returncode == -signal.SIGTERM


def test_another_thread_is_not_concerned() -> None:
    seen = []

    def work() -> None:
        with uninterrupted("work"):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_a_worker_obeys_once() -> None:
    script = (
        "import signal; from harness.interruption import obey_once\n"
        "obey_once()\n"
        "try: signal.raise_signal(signal.SIGINT)\n"
        "except KeyboardInterrupt: signal.raise_signal(signal.SIGINT); print('put back')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "put back\n")
