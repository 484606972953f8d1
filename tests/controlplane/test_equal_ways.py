"""One life of device images, by REST and by CLI: the same answers, the same statements after each step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import pytest
from support.served_system import Serve, Served
from support.starlingx_lab import CARD, RECIPES

from harness.controlplane.changes import Change, WayIn
from harness.controlplane.cli import CliWay
from harness.controlplane.gate import Permits
from harness.controlplane.protocol import Said, Upload
from harness.controlplane.rest import RestWay
from harness.errors import HarnessError
from harness.images.recipes import build
from harness.judgement.values import Unknown

HOST = "controller-0"
#: Of a statement what no two systems have in common, or what is a time.
_OWN = {"created_at", "updated_at", "update_start_time", "timestamp"}
#: The command asks for a host once more after the answer to a change: what is another by then.
_MEANWHILE = {
    "update": {"device_image_update", "reboot_needed"},
    "lock": {"administrative", "operational", "availability", "task"},
}
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass
class Story:
    """One system, what changes it, and both ways to ask it. ``told``: step -> the answers to its changes."""

    served: Served
    way: WayIn
    others: Sequence[WayIn]
    told: dict[str, list[Any]] = field(default_factory=dict)
    _known: dict[str, str] = field(default_factory=dict)

    def plain(self, said: Sequence[Said]) -> list[dict[str, Any]]:
        """Return statements with each uuid by its number; what is not shown is left out."""
        return [
            {
                f.name: self._numbered(value)
                for f in fields(one)
                if f.name not in _OWN and not isinstance(value := getattr(one, f.name), Unknown)
            }
            for one in said
        ]

    def _numbered(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        text = _UUID.sub(lambda m: self._known.setdefault(m[0], f"uuid-{len(self._known)}"), value)
        return text.rstrip()  # a table shows no blanks at the end of a text

    def do(self, step: str, *changes: Change) -> list[Any]:
        """Carry out changes; keep what is answered, or the text of what refuses."""
        answers: list[Any] = []
        for change in changes:
            try:
                answers += self.way.carry_out(change, Permits(change, "a test"))
            except HarnessError as error:
                answers.append(type(error))
        self.told[step] = answers
        assert self.served.lab.system.settle()
        return answers


def steps(story: Story) -> Iterator[str]:
    """Upload, label, apply, update, boot, remove and delete images of every kind; yield after each step."""
    kinds = {
        "root-key-A": ("root-key", {"key_signature": "1"}),
        "cancel-A-csk1": ("key-revocation", {"revoke_key_id": 1}),
        "A/csk0": ("functional", {"bitstream_id": "0x2", "name": "two words", "bmc": False}),
    }
    uuids = []
    for name, (kind, more) in kinds.items():
        upload = Upload(build(RECIPES[name]), "a.bin", kind, **more)
        (shown,) = story.do(f"upload of {name}", Change("image-upload", image=upload))
        uuids.append(shown.uuid)
        yield f"upload of {name}"
    story.do("labels", Change("label-assign", HOST, CARD, (("site", "lab"), ("rack", "7 a"))))
    yield "labels"
    for uuid in uuids:
        story.do(f"apply {uuids.index(uuid)}", Change("image-apply", uuid, labels=(("site", "lab"),)))
        yield f"apply {uuids.index(uuid)}"
    story.do("delete what is applied", Change("image-delete", "nobody"), Change("image-apply", "nobody"))
    story.do("update", Change("host-update", HOST))
    story.served.lab.pass_time(600)
    yield "update"
    story.do("written images stay", *(Change("image-delete", uuid) for uuid in uuids))
    yield "written images stay"
    story.do("lock", Change("host-lock", HOST))
    story.served.lab.pass_time(60)
    yield "lock"
    story.served.lab.host_action("unlock")
    story.served.lab.pass_time(600)
    yield "boot"
    story.do("remove", *(Change("image-remove", uuid, labels=(("site", "lab"),)) for uuid in uuids))
    yield "remove"
    story.do("unlabel", Change("label-remove", HOST, CARD, keys=("site", "rack")))
    story.do("delete", *(Change("image-delete", uuid) for uuid in uuids))
    yield "delete"


_ASKED: dict[str, Callable[[WayIn], Sequence[Said]]] = {
    "images": lambda way: sorted(way.images(), key=lambda image: str(image.bitstream_type)),
    "states": lambda way: way.states(),
    "labels": lambda way: way.labels(),
    "devices": lambda way: sorted(way.devices(HOST), key=lambda device: device.address),
    "device": lambda way: [way.device(HOST, CARD)],
    "hosts": lambda way: way.hosts(),
    "host": lambda way: [way.host(HOST)],
    "alarms": lambda way: way.alarms(),
}


def known_to_both(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return of each statement of ``one`` what the other shows as well."""
    return [{name: a[name] for name in a if name in b} for a, b in zip(one, other, strict=True)]


@pytest.mark.parametrize("release", ["head", "corrected"])
def test_a_life_by_rest_and_a_life_by_command_are_the_same(serve: Serve, release: str) -> None:
    stories = []
    for kind in ("rest", "cli"):
        served = serve(release)
        rest, cli = RestWay("system1", served.login), CliWay("system1", served.controller())
        stories.append(Story(served, rest if kind == "rest" else cli, (rest, cli)))
    lives = [steps(story) for story in stories]
    seen = set()
    for passed in zip(*lives, strict=True):
        assert len(set(passed)) == 1
        for what, ask in _ASKED.items():
            (a, b), (c, d) = ([story.plain(ask(way)) for way in story.others] for story in stories)
            assert a == c, (passed[0], what, "by REST")
            assert b == d, (passed[0], what, "by CLI")
            assert known_to_both(a, b) == known_to_both(b, a), (passed[0], what)
            seen |= {(what, len(a))}
    answers = [story.told for story in stories]
    assert answers[0].keys() == answers[1].keys()
    for step in answers[0]:
        one, other = (
            [said if isinstance(said, type) else story.plain([said])[0] for said in told[step]]
            for story, told in zip(stories, answers, strict=True)
        )
        assert list(map(type, one)) == list(map(type, other)), step
        for a, b in zip(one, other, strict=True):
            if isinstance(a, type):
                assert a is b, step
            else:
                both = (a.keys() & b.keys()) - _MEANWHILE.get(step, set())
                assert len(both) > 1, step
                assert {name: a[name] for name in both} == {name: b[name] for name in both}, step
    assert {("images", 3), ("states", 3), ("labels", 2), ("alarms", 1), ("alarms", 0), ("images", 0)} <= seen
    for story in stories:
        for way in story.others:
            way.close()
