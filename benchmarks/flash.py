"""Putting a 64 KiB image on a host and flashing it over SSH, in a lab whose time is instant."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from benchmarks import labs
from benchmarks.rows import Row, in_turn
from harness.cards.driver import CardDriver
from harness.cards.gate import Gate
from harness.hosts.protocol import Host
from harness.images.keys import key_from_seed
from harness.images.payload import PayloadIdentity, build_payload
from harness.images.sign import root_key_image, sign
from harness.judgement.records import Promise
from harness.lab.running import RunningLab

PAYLOAD_SIZE = 64 << 10
_LANDS = Promise("lands", source="benchmark")


def measure(rounds: int) -> list[Row]:
    """Return the rows of a warm connection and of one that is opened for it, each bare and judged.

    Bare: the image is put there and the tool run under the exclusive hold, which looks at the image once
    more. Judged: as scenarios have it, with the card read before and after, what arrived read back, the
    kernel's log, and every record written. The card holds a root, so that it verifies two signatures.
    """
    identity = PayloadIdentity(0x23000410010311, "a5d72a3c-c8b0-4939-912c-f715e5dc10ca")
    root, csk = key_from_seed("root"), key_from_seed("csk")
    image = sign(build_payload(identity, PAYLOAD_SIZE, "benchmark"), root=root, csk=csk)
    with labs.started() as lab, labs.recorded() as history:
        host = labs.reach(lab)
        card = labs.driver(lab, host, history)
        card.flash(root_key_image(root.public), "root key", _LANDS)
        bare = _BareFlash(lab, card, image)

        def over_a_new_connection(act: Callable[[Host], None]) -> None:
            fresh = labs.reach(lab)
            try:
                act(fresh)
            finally:
                fresh.close()

        acts = (
            lambda: bare.flash(host),
            lambda: over_a_new_connection(bare.flash),
            lambda: _flash(card, image),
            lambda: over_a_new_connection(lambda fresh: _flash(labs.driver(lab, fresh, history), image)),
            lambda: host.run(["true"]),
        )
        warm, opened, judged_warm, judged_opened, exchange = in_turn(acts, rounds, warm_up=3)
        host.close()
    fsync = f"records go to memory: the one fsync of an operation takes {labs.fsync_ms():.2g} ms on this disk"
    all_of_it = "the same with every reading and record that a judged flash needs"
    alone = "put + flash alone"
    return [
        Row("put + flash, warm", "64 KiB", "ms", warm, 10, "result", "a bare exec", exchange),
        Row("put + flash, connect", "64 KiB, login and all", "ms", opened, 20, "result", "warm", warm),
        Row("judged flash, warm", all_of_it, "ms", judged_warm, 10, "result", alone, warm, fsync),
        Row("judged flash, connect", all_of_it, "ms", judged_opened, 20, "result", alone, opened),
    ]


def _flash(card: CardDriver, image: bytes) -> None:
    result = card.flash(image, "image", _LANDS)
    assert result.statement.result == "done"
    assert result.auth_code == ""


class _BareFlash:
    """The put and the tool's command, each in one exchange, with nothing read and nothing recorded."""

    def __init__(self, lab: RunningLab, card: CardDriver, image: bytes) -> None:
        self._image = image
        self._path = "/tmp/hil-00.bin"
        self._gate = Gate("node0", lab.entry.host("node0").card("card0"), real=False, allowed=())
        self._sha256 = hashlib.sha256(image).hexdigest()
        self._seen = card.truth()

    def flash(self, host: Host) -> None:
        """Put the image and flash it; each takes a permit of its own, which is good once."""
        host.put(self._image, self._path, permit=self._gate.upload(self._image, self._path))
        tool = self._gate.flash(self._image, self._sha256, self._path, self._seen)
        assert host.run(tool.argv, permit=tool).exit_code == 0
