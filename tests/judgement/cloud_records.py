"""The records of a made-up distributed cloud, as its drivers and its fixture write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from harness.judgement.judge import ScenarioJudgement, judge_scenario
from harness.judgement.model import Outcome, Verdict, VerdictKind
from harness.judgement.records import (
    Claim,
    Completion,
    Evidence,
    Intent,
    Observation,
    Record,
    ScenarioEnded,
    ScenarioStarted,
    Subject,
)
from harness.judgement.values import Unknown

CONTROLLER, HOST = "central", "controller-0"
ROOT_A, ROOT_B = "aa" * 32, "bb" * 32
FACTORY = 0x23000410010300
#: What images are, by their bytes: the two of the first field report, a root key and a cancellation.
IMAGE_11 = {
    "name": "image-11",
    "effect": "user-image",
    "section": "SR",
    "bitstream_id": 0x11,
    "unsigned": False,
    "root_entry_hash": ROOT_A,
    "csk_id": 1,
}
IMAGE_2 = IMAGE_11 | {"name": "image-2", "bitstream_id": 0x2, "unsigned": True, "root_entry_hash": None}
KEY_A = {"name": "key-a", "effect": "root-key", "section": "SR", "programs_root": ROOT_A}
KEY_B = KEY_A | {"name": "key-b", "programs_root": ROOT_B}
CANCEL_1 = {
    "name": "cancel-1",
    "effect": "key-cancellation",
    "section": "SR",
    "cancel_id": 1,
    "unsigned": False,
    "root_entry_hash": ROOT_A,
}
_TYPES = {"root-key": "root-key", "key-cancellation": "key-revocation"}
#: An image that a card shows just as it shows another one.
TWIN = IMAGE_11 | {"name": "image-11b", "sha256": "22" * 32}
ABC = {"subcloud": "abc"}
Labels = dict[str, str]


@dataclass
class Sub:
    """A subcloud: what dcmanager says of it, what it says itself, and its one card."""

    name: str
    address: str
    card: dict[str, Any]
    row: dict[str, Any]
    labels: Labels = field(default_factory=dict)
    #: Image -> labels that it says the image is applied to; None: it has it, and does not apply it.
    images: dict[str, Labels | None] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    step: dict[str, Any] | None = None
    #: How it shows images that its controller does not know.
    shown: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: What its VIM says of its own strategy; None: it is not asked.
    vim: dict[str, Any] | None = None
    read: bool = True
    #: Cards that it has besides, and that nobody reads.
    others: int = 0
    #: Whether it can be looked at: ``no``: nobody can; ``broken``: the look begins, and fails.
    answers: str = "yes"


class Cloud:
    """One scenario; every method adds the records of one event."""

    def __init__(self, *names: str) -> None:
        self.records: list[Record] = []
        self.now = 1000.0
        self.images: dict[str, dict[str, Any]] = {}
        self.facts: dict[str, dict[str, Any]] = {}
        self.strategy = ""
        self.alarms: set[str] = set()
        #: Those that are said before all else, as of a real cloud; None: they are asked for once.
        self.alarms_before: set[str] | None = None
        self.subs: dict[str, Sub] = {}
        for number, name in enumerate(names, 1):
            card = {
                "identity": f"64:4c:36:00:00:0{number}",
                "boot_id": "first",
                "bitstream_id": FACTORY,
                "sr_root": "",
                "sr_cancelled": [],
                "flash_count": 5,
                "update_status": "idle",
            }
            row = {"management": "managed", "availability": "online", "firmware_sync_status": "in-sync"}
            self.subs[name] = Sub(name, "0000:b4:00.0", card, row)
        self.add(ScenarioStarted(scenario="made-up"))

    def __getitem__(self, name: str) -> Sub:
        return self.subs[name]

    def add(self, record: Any) -> Any:
        numbered = replace(record, seq=len(self.records) + 1, time=1.0, source_time=self.now)
        self.records.append(numbered)
        return numbered

    # -- what is asked ----------------------------------------------------------------------------------

    def act(self, system: str, operation: str, how: Any = "returned", **parameters: Any) -> int:
        subject = Subject("record", f"{system}/{parameters.get('target', 'strategy/firmware')}")
        intent = self.add(Intent(operation=operation, subject=subject, parameters=parameters)).seq
        if how == "unanswered":
            self.add(
                Completion(intent=intent, how="raised", error={"kind": "infrastructure", "message": "gone"})
            )
            return int(intent)
        error = {} if how == "returned" else {"kind": "device", "message": "no"}
        self.add(Completion(intent=intent, how=how, error=error))
        return int(intent)

    def label(self, name: str, **labels: str) -> None:
        given = [f"{key}={value}" for key, value in labels.items()]
        self.act(name, "label-assign", target=HOST, device=self.subs[name].address, labels=given)
        self.subs[name].labels |= labels

    def unlabel(self, name: str, *keys: str) -> None:
        self.act(name, "label-remove", target=HOST, device=self.subs[name].address, keys=list(keys))
        self.subs[name].labels = {k: v for k, v in self.subs[name].labels.items() if k not in keys}

    def upload(self, facts: dict[str, Any]) -> str:
        uuid = str(facts["name"])
        subject = Subject("record", f"{CONTROLLER}/image/{uuid}")
        self.add(Observation(probe="image-bytes", subject=subject, values={"image": facts}))
        self.facts[uuid] = facts
        self.images[uuid] = {
            "uuid": uuid,
            "bitstream_type": _TYPES.get(facts["effect"], "functional"),
            "bitstream_id": str(facts.get("bitstream_id")),
            "bmc": False,
            "applied": False,
            "applied_labels": None,
        }
        return uuid

    def apply(self, uuid: str, **labels: str) -> None:
        self.act(CONTROLLER, "image-apply", target=uuid)
        shown = [[k, v] for k, v in labels.items()] or [["", ""]]
        self.images[uuid] |= {"applied": True, "applied_labels": shown}

    def remove(self, uuid: str, how: str = "returned") -> None:
        self.act(CONTROLLER, "image-remove", how, target=uuid)
        self.images[uuid] |= {"applied": False, "applied_labels": None}

    def orchestrate(self, **ends: str) -> int:
        """Apply a strategy; each subcloud of ``ends`` has a step that ends so."""
        intent = self.act(CONTROLLER, "strategy-apply")
        for name, sub in self.subs.items():
            sub.step = {"cloud": name, "state": ends[name], "details": ""} if name in ends else None
        self.strategy = "failed" if "failed" in ends.values() else "complete"
        return intent

    # -- what happens -----------------------------------------------------------------------------------

    def write(self, name: str, uuid: str, labels: Labels | None = None, *, boot: bool = True) -> None:
        """Have an image written, and its host booted; it takes the place of another functional one."""
        sub, facts = self.subs[name], self.facts[uuid]
        sub.card["flash_count"] += 1
        if facts["effect"] == "user-image":
            sub.images = dict.fromkeys(sub.images)
            sub.states = {}
            if boot:
                sub.card["bitstream_id"] = facts["bitstream_id"]
        elif facts["effect"] == "root-key":
            sub.card["sr_root"] = facts["programs_root"]
        sub.images[uuid] = sub.labels if labels is None else labels
        sub.states[uuid] = "completed"
        if boot:
            sub.card["boot_id"] += "+"

    def fail(self, name: str, uuid: str) -> None:
        """Have an image tried and refused by the card."""
        sub = self.subs[name]
        sub.card["flash_count"] += 1
        sub.images = dict.fromkeys(sub.images) | {uuid: sub.labels}
        sub.states = {uuid: "failed"}

    def forget(self, name: str) -> None:
        """Have a system forget labels and states of its device, and so which images are applied."""
        sub = self.subs[name]
        sub.labels, sub.states, sub.images = {}, {}, dict.fromkeys(sub.images)

    # -- what is said and seen ----------------------------------------------------------------------------

    def look(self, later: float = 1.0) -> None:
        """All that the controller and the subclouds say now, and every card."""
        self.now += later
        twice = () if self.alarms_before is None else ("alarm",)
        own = self._begin(CONTROLLER, "image", "label", "alarm", "subcloud", "strategy", "step", *twice)
        self._say_alarms(self.alarms_before or ())
        for uuid, shown in self.images.items():
            self._say(CONTROLLER, "image", uuid, **shown)
        for name, sub in self.subs.items():
            self._say(CONTROLLER, "subcloud", name, name=name, **sub.row)
            if sub.step is not None:
                self._say(CONTROLLER, "step", name, **sub.step)
        if self.strategy:
            self._say(CONTROLLER, "strategy", "firmware", type="firmware", state=self.strategy)
        self._say_alarms(self.alarms)
        self.add(Completion(intent=own, how="returned"))
        for sub in self.subs.values():
            self._look_at(sub)

    def _say_alarms(self, names: Iterable[str]) -> None:
        for name in names:
            entity = f"subcloud={name}.resource=firmware"
            said = {"alarm_id": "280.002", "entity_instance_id": entity}
            self._say(CONTROLLER, "alarm", f"280.002/{entity}", **said)

    def _look_at(self, sub: Sub) -> None:
        if sub.answers == "no":
            return
        intent = self._begin(sub.name, "image", "state", "label", "device", "host")
        for uuid, labels in sub.images.items():
            applied = None if labels is None else [list(each) for each in labels.items()] or [["", ""]]
            shown = {"applied": labels is not None, "applied_labels": applied}
            self._say(sub.name, "image", uuid, **(self.images | sub.shown)[uuid] | shown)
        place = {"hostname": HOST, "address": sub.address}
        for uuid, status in sub.states.items():
            self._say(sub.name, "state", f"{HOST}/{uuid}", image_uuid=uuid, status=status, **place)
        self._say(sub.name, "device", f"{HOST}/dev", name="dev", device_id="0b30", **place)
        for number in range(sub.others):
            other = {"hostname": HOST, "address": f"0000:c{number}:00.0", "name": f"other{number}"}
            self._say(sub.name, "device", f"{HOST}/other{number}", device_id="0b30", **other)
        if sub.vim is not None:
            self._say(sub.name, "vim-strategy", "firmware", **sub.vim)
        for key, value in sub.labels.items():
            said = {"label_key": key, "label_value": value}
            self._say(sub.name, "label", f"{HOST}/{key}", hostname=HOST, device="dev", **said)
        if sub.read:
            subject = Subject("card", f"{sub.name}/card0", sub.name, sub.address, sub.card["identity"])
            values = sub.card | {"address": sub.address, "system": sub.name, "hostname": HOST}
            self.add(Observation(probe="card", subject=subject, values=values, intent=intent))
        how: Any = "raised" if sub.answers == "broken" else "returned"
        self.add(Completion(intent=intent, how=how))

    def _begin(self, system: str, *asked: str) -> int:
        subject = Subject("record", system)
        return int(self.add(Intent(operation="look", subject=subject, parameters={"asked": asked})).seq)

    def _say(self, system: str, kind: str, record: str, /, **statement: Any) -> None:
        subject = Subject("record", f"{system}/{kind}/{record}", HOST if kind == "state" else "")
        if kind == "state":
            subject = replace(subject, address=statement["address"])
        reporter = "dcmanager" if kind in ("subcloud", "step", "strategy") else "sysinv"
        self.add(Claim(reporter=reporter, subject=subject, statement=statement, evidence=Evidence("row")))

    # -- judging ----------------------------------------------------------------------------------------

    def judged(self) -> ScenarioJudgement:
        ended = ScenarioEnded(scenario="made-up", seq=len(self.records) + 1)
        return judge_scenario([*self.records, ended])

    def outcomes(self) -> dict[str, Outcome]:
        """Return how the last thing that was asked turned out, by what that concerned."""
        found = self.judged().outcomes
        last = max(outcome.intent for outcome in found)
        return {o.subject.name.rpartition("/")[2]: o.outcome for o in found if o.intent == last}

    def last(self, reporter: str, about: str = "") -> Verdict:
        """Return the last verdict on what a reporter says of ``about``."""
        found = [v for v in self.judged().judged if v.reporter == reporter and about in v.subject.name]
        assert found, f"{reporter} said nothing of {about}"
        return found[-1]

    def kind(self, reporter: str, about: str = "") -> VerdictKind:
        return self.last(reporter, about).kind


def unread(*fields: str) -> Callable[[Sub], None]:
    """Make fields of a card unreadable."""

    def strike(sub: Sub) -> None:
        sub.card.update({name: Unknown("no such file") for name in fields})

    return strike


def field_report() -> Cloud:
    """The first field report: two rounds, four subclouds, two images for the same labels."""
    cloud = Cloud("sub1", "sub2", "sub3", "sub4")
    cloud["sub3"].card["sr_root"] = ROOT_A
    cloud.look()
    own = {"sub1": ABC, "sub2": ABC, "sub3": {"subcloud3": "3"}, "sub4": {"subcloud4": "4"}}
    every = ABC | {"subcloud3": "3", "subcloud4": "4"}
    for name, labels in own.items():
        cloud.label(name, **labels)
    cloud.apply(cloud.upload(IMAGE_11), **every)
    cloud.orchestrate(**dict.fromkeys(own, "complete"))
    for name in own:
        cloud.write(name, "image-11")
    cloud.forget("sub1")
    cloud.forget("sub2")
    cloud.look()
    cloud.label("sub1", **ABC)
    cloud.label("sub2", **ABC)
    cloud.apply(cloud.upload(IMAGE_2), **every)
    cloud.orchestrate(sub1="complete", sub2="complete", sub3="failed", sub4="complete")
    for name in ("sub1", "sub2", "sub4"):
        cloud.write(name, "image-2")
    cloud.fail("sub3", "image-2")
    cloud.forget("sub1")
    cloud.forget("sub2")
    for name in ("sub3", "sub4"):
        cloud[name].row["firmware_sync_status"] = "out-of-sync"
        cloud.alarms.add(name)
    cloud.look()
    return cloud
