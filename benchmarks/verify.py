"""Verifying a 58 MB image: the time beside a plain SHA-384 of the same bytes, and the memory it takes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.rows import Row, Samples, in_turn
from harness.images.keys import key_from_seed
from harness.images.payload import PayloadIdentity, build_payload
from harness.images.sign import sign
from harness.images.verify import verify, verify_stream

HIL = str(Path(sys.executable).with_name("hil"))
#: Near the largest that the card's staging area takes.
PAYLOAD_SIZE = 58_000_000
_PIPE_BYTES = 1 << 16


def measure(rounds: int) -> list[Row]:
    """Return the rows of time and of anonymous memory."""
    identity = PayloadIdentity(0x23000410010311, "a5d72a3c-c8b0-4939-912c-f715e5dc10ca")
    payload = build_payload(identity, PAYLOAD_SIZE, "benchmark")
    image = sign(payload, root=key_from_seed("root"), csk=key_from_seed("csk"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "image.bin")
        file.write_bytes(image)
        return [*_times(image, file, rounds), *_memory(file, min(rounds, 5))]


def _times(image: bytes, file: Path, rounds: int) -> list[Row]:
    def from_file() -> None:
        with file.open("rb", buffering=0) as stream:
            assert verify_stream(stream).ok

    def from_memory() -> None:
        assert verify(image).ok

    acts = (lambda: hashlib.sha384(image), from_file, from_memory)
    sha384, streamed, in_memory = in_turn(acts, rounds)
    goal = "within 1.1 x of one SHA-384 although it makes two hashes and checks two signatures"
    peer = "hashlib sha384"
    return [
        Row("verify 58 MB, file", f"a file, streamed: {goal}", "ms", streamed, 1.1, "ratio", peer, sha384),
        Row("verify 58 MB, bytes", f"bytes in memory: {goal}", "ms", in_memory, 1.1, "ratio", peer, sha384),
    ]


def _memory(file: Path, rounds: int) -> list[Row]:
    from_file = Samples(tuple(_peak_of_file(file) for _ in range(rounds)))
    from_pipe = Samples(tuple(_peak_of_pipe(file) for _ in range(rounds)))
    size = Samples((file.stat().st_size / 2**20,))
    what = "most anonymous memory of the process `hil image verify"

    def row(goal: str, words: str, found: Samples) -> Row:
        return Row(goal, f"{what} {words}", "MiB", found, 32, peer="the image itself", peer_result=size)

    return [
        row("verify, memory", "FILE`", from_file),
        row("verify, memory, pipe", "-` fed by a pipe", from_pipe),
    ]


def _peak_of_file(file: Path) -> float:
    """Return the most anonymous memory, in MiB, that was seen while the command ran."""
    process = subprocess.Popen([HIL, "image", "verify", str(file)], stdout=subprocess.DEVNULL)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, anonymous_mib(process.pid))
        time.sleep(0.002)  # a sample every so often; there is no event for a peak
    assert process.returncode == 0
    return peak


def _peak_of_pipe(file: Path) -> float:
    """Return the same where the image comes through a pipe; looked at after each piece of it."""
    process = subprocess.Popen(
        [HIL, "image", "verify", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, bufsize=0
    )
    assert process.stdin is not None
    peak = 0.0
    with file.open("rb") as source, process.stdin as sink:
        for number, piece in enumerate(iter(lambda: source.read(_PIPE_BYTES), b"")):
            os.write(sink.fileno(), piece)
            if number % 8 == 0:
                peak = max(peak, anonymous_mib(process.pid))
    assert process.wait() == 0
    return peak


def anonymous_mib(pid: int) -> float:
    """Return the anonymous memory of a process in MiB; 0 once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon:")), 0.0)
