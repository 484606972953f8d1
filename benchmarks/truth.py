"""Reading the truth of one card over SSH: on an emulated host, and through a real OpenSSH server."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import labs
from benchmarks.rows import Row, in_turn
from harness.cards.truth import read_truth
from harness.hosts.access import Access
from harness.hosts.ssh import SshHost

TESTS = str(Path(__file__).parents[1] / "tests")
_ADDRESS = labs.address(0)


def measure(rounds: int) -> list[Row]:
    """Return the rows of both servers; the peer is a bare exec on the same connection."""
    return [_emulated(rounds), _openssh(rounds)]


def _emulated(rounds: int) -> Row:
    with labs.started() as lab:
        host = labs.reach(lab)
        assert isinstance(read_truth(host, _ADDRESS).flash_count, int)
        truth, bare = in_turn(
            (lambda: read_truth(host, _ADDRESS), lambda: host.run(["true"])), rounds, warm_up=5
        )
        host.close()
    what = "every field of one card of an emulated host, warm connection"
    return Row("truth, emulated", what, "ms", truth, 5, peer="a bare exec", peer_result=bare)


def _openssh(rounds: int) -> Row:
    """:raises BaseException: no OpenSSH server is to be had; the message says what is missing."""
    if TESTS not in sys.path:
        sys.path.append(TESTS)
    from support.cards import add_card  # type: ignore[import-not-found]  # of the tests
    from support.openssh import OpenSsh  # type: ignore[import-not-found]

    with TemporaryDirectory() as folder:
        sysfs = Path(folder, "sys")
        card = add_card(sysfs)
        keys = Path(folder, "keys")
        keys.mkdir()
        server = OpenSsh(keys)
        try:
            server.start()
            login = Access(
                "127.0.0.1", server.port, server.user, server.known_hosts, key_file=server.key_file
            )
            host = SshHost("bench", login)
            assert read_truth(host, card.address, sysfs=str(sysfs)).on_bus
            truth, bare = in_turn(
                (
                    lambda: read_truth(host, card.address, sysfs=str(sysfs)),
                    lambda: host.run(["true"]),
                ),
                rounds,
                warm_up=5,
            )
            host.close()
        finally:
            server.stop()
    what = "the same from a tree of files, through a real OpenSSH server"
    return Row("truth, OpenSSH", what, "ms", truth, 3, "ratio", "a bare exec", bare)
