"""Putting a 64 KiB image on a host and flashing it over SSH, in a lab whose time is instant."""

from __future__ import annotations

import hashlib

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
    """Return the rows of a warm connection and of one that is opened for it.

    What is timed is the operation as scenarios have it: the card read before and after, what arrived read
    back, the tool under the exclusive hold, the kernel's log, every record written. The card holds a root,
    so that it verifies two signatures.
    """
    identity = PayloadIdentity(0x23000410010311, "a5d72a3c-c8b0-4939-912c-f715e5dc10ca")
    root, csk = key_from_seed("root"), key_from_seed("csk")
    image = sign(build_payload(identity, PAYLOAD_SIZE, "benchmark"), root=root, csk=csk)
    with labs.started() as lab, labs.recorded() as history:
        host = labs.reach(lab)
        card = labs.driver(lab, host, history)
        card.flash(root_key_image(root.public), "root key", _LANDS)
        bare = _BareFlash(lab, host, card, image)

        def warm() -> None:
            _flash(card, image)

        def from_connect() -> None:
            fresh = labs.reach(lab)
            try:
                _flash(labs.driver(lab, fresh, history), image)
            finally:
                fresh.close()

        judged, opened, alone = in_turn((warm, from_connect, bare.flash), rounds, warm_up=3)
        host.close()
    what = "put, flash and every reading and record that a judged flash needs"
    note = f"records go to memory: the one fsync of an operation takes {labs.fsync_ms():.2g} ms on this disk"
    peer = "put and fpgasupdate alone"
    return [
        Row("flash 64 KiB, warm", what, "ms", judged, 10, peer=peer, peer_result=alone, note=note),
        Row("flash 64 KiB, connect", f"connect, log in, {what}", "ms", opened, 20, "result", peer, alone),
    ]


def _flash(card: CardDriver, image: bytes) -> None:
    result = card.flash(image, "image", _LANDS)
    assert result.statement.result == "done"
    assert result.auth_code == ""


class _BareFlash:
    """The put and the tool's command, each in one exchange, with nothing read and nothing recorded."""

    def __init__(self, lab: RunningLab, host: Host, card: CardDriver, image: bytes) -> None:
        self._host = host
        self._image = image
        self._path = "/tmp/hil-00.bin"
        gate = Gate(host.name, lab.entry.host(host.name).card("card0"), real=False, allowed=())
        self._put = gate.upload(image, self._path)
        arrived = hashlib.sha256(image).hexdigest()
        self._tool = gate.flash(image, arrived, self._path, card.address, card.identity or "")

    def flash(self) -> None:
        """Put the image and flash it."""
        self._host.put(self._image, self._path, permit=self._put)
        assert self._host.run(self._tool.argv, permit=self._tool).exit_code == 0
