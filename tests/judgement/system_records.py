"""The records of a made-up StarlingX system with one card, as its driver and its fixture write them.

Values are those of the fact sheet of StarlingX, sections 1 to 4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.judgement.judge import ScenarioJudgement, judge_scenario
from harness.judgement.model import VerdictKind
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

SYSTEM, HOST, CARD, PLACE = "system1", "controller-0", "host1/card0", "0000:b2:00.0"
MAC, ELSEWHERE, DEVICE = "64:4c:36:10:01:00", "0000:b4:00.0", "pci_0000_b2_00_0"
OLD, NEW = 0x23000410010310, 0x23000410010311
ROOT = "ab" * 32
#: What each image is, by its bytes, in the words of the facts of images.
USER = {"name": "user", "effect": "user-image", "section": "SR", "bitstream_id": NEW}
OTHER = {"name": "other", "effect": "user-image", "section": "SR", "bitstream_id": NEW + 1}
BMC = {"name": "bmc", "effect": "bmc-image", "section": "BMC", "bmc_version": "D.2.0.20"}
KEY = {"name": "key", "effect": "root-key", "section": "SR", "programs_root": ROOT}
CANCEL = {"name": "cancel", "effect": "key-cancellation", "section": "SR", "cancel_id": 3}
TRUTH: dict[str, Any] = {
    "identity": MAC,
    "address": PLACE,
    "boot_id": "first",
    "bitstream_id": OLD,
    "sr_root": "",
    "sr_cancelled": [],
    "boot_page": "user",
    "bmc_version": "D.2.0.6",
    "bmcfw_version": "D.2.0.12",
    "flash_count": 5,
    "update_status": "idle",
}
SHOWN: dict[str, Any] = {
    "bitstream_id": f"{OLD:#x}",
    "root_key": "",
    "revoked_key_ids": "",
    "boot_page": "user",
    "bmc_build_version": "D.2.0.6",
    "bmc_fw_version": "D.2.0.12",
}
ASKED = ("image", "state", "label", "device", "host", "alarm")


class Story:
    """The records of one system with one card, as the driver and the fixture write them."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.now = 1000.0
        self.card = dict(TRUTH)
        self.device: dict[str, Any] = dict(SHOWN)
        self.states: dict[str, str] = {}
        self.images: dict[str, dict[str, Any]] = {}
        self.host: dict[str, Any] = {"device_image_update": "", "reboot_needed": False}
        self.alarm = False
        self.labels: list[tuple[str, str]] = []
        #: Of a second card, and what the system says of images on it; none where it is empty.
        self.second: dict[str, Any] = {}
        self.second_states: dict[str, str] = {}
        #: Labels that no device carries.
        self.floating: list[tuple[str, str]] = []
        #: Whether the host has the file that has its retimers reset.
        self.retimer_flag = False
        self.add(ScenarioStarted(scenario="made-up"))

    def add(self, record: Any) -> Any:
        numbered = replace(record, seq=len(self.records) + 1, time=1.0, source_time=self.now)
        self.records.append(numbered)
        return numbered

    def upload(self, facts: dict[str, Any], promise: str = "lands", **shown: Any) -> str:
        uuid = facts["name"]
        kind = {"root-key": "root-key", "key-cancellation": "key-revocation"}.get(
            facts["effect"], "functional"
        )
        said = {"uuid": uuid, "bitstream_type": kind, "bmc": facts["effect"] == "bmc-image"}
        self.images[uuid] = said | {"applied": True, "applied_labels": [["", ""]]} | shown
        subject = Subject("record", f"{SYSTEM}/image/{uuid}")
        self.add(Observation(probe="image", subject=subject, values={"image": facts, "promise": promise}))
        return str(uuid)

    def act(self, operation: str, how: Any = "returned", error: str = "", **parameters: Any) -> int:
        subject = Subject("record", f"{SYSTEM}/{parameters.get('target', '')}")
        intent = self.add(Intent(operation=operation, subject=subject, parameters=parameters)).seq
        self.add(Completion(intent=intent, how=how, error={"kind": error, "message": "no"} if error else {}))
        return int(intent)

    def say(self, kind: str, record: str, place: str = "", /, **statement: Any) -> None:
        subject = Subject("record", f"{SYSTEM}/{kind}/{record}", HOST, place)
        self.add(Claim(reporter="sysinv", subject=subject, statement=statement, evidence=Evidence("row")))

    def say_state(self, image: str, status: str, address: str = PLACE) -> None:
        said = {"hostname": HOST, "address": address, "image_uuid": image, "status": status}
        self.say("state", f"{HOST}/{address}/{image}", address, **said)

    def look(self, later: float = 1.0, address: str = PLACE) -> None:
        """Everything that the system says now, and the card."""
        self.now += later
        subject = Subject("record", SYSTEM)
        intent = self.add(Intent(operation="look", subject=subject, parameters={"asked": ASKED})).seq
        for uuid, shown in self.images.items():
            self.say("image", uuid, **shown)
        for image, status in self.states.items():
            self.say_state(image, status, address)
        self.say(
            "device", f"{HOST}/{address}", address, hostname=HOST, address=address, name=DEVICE, **self.device
        )
        for key, value in self.labels:
            self.say(
                "label", f"{key}={value}", hostname=HOST, device=DEVICE, label_key=key, label_value=value
            )
        for key, value in self.floating:
            self.say("label", f"{key}={value}", hostname=None, device=None, label_key=key, label_value=value)
        for image, status in self.second_states.items():
            self.say_state(image, status, ELSEWHERE)
        self.say("host", HOST, hostname=HOST, **self.host)
        if self.alarm:
            self.say("alarm", "900.006/x", alarm_id="900.006")
        card = Subject("card", CARD, "host1", PLACE, MAC)
        values = self.card | {"system": SYSTEM, "hostname": HOST}
        self.add(Observation(probe="card", subject=card, values=values, intent=intent))
        if self.second:
            card = Subject("card", "host1/card1", "host1", ELSEWHERE, "64:4c:36:10:02:00")
            values = TRUTH | {"address": ELSEWHERE} | self.second | {"system": SYSTEM, "hostname": HOST}
            self.add(Observation(probe="card", subject=card, values=values, intent=intent))
        host = Subject("record", f"{SYSTEM}/host/{HOST}", "host1")
        flag = {"system": SYSTEM, "hostname": HOST, "retimer_flag": self.retimer_flag}
        self.add(Observation(probe="host", subject=host, values=flag, intent=intent))
        self.add(Completion(intent=intent, how="returned"))

    def owe(self, *facts: dict[str, Any], promise: str = "lands") -> None:
        """Upload and apply images, which the system then owes to the card."""
        for each in facts:
            self.states[self.upload(each, promise)] = "pending"
        self.host["device_image_update"], self.alarm = "pending", True
        self.look()

    def update(self, *, count: int = 1, **statuses: str) -> None:
        """Write what is owed; each image ends as ``statuses`` say."""
        self.act("host-update", target=HOST)
        self.card["flash_count"] += count
        self.states |= statuses
        completed = "completed" in statuses.values()
        left = any(status != "completed" for status in self.states.values())
        self.host = {"device_image_update": "pending" if left else "", "reboot_needed": completed}
        self.look()

    def boot(self, **truth: Any) -> None:
        """Boot the host, which resets the card; what it shows afterwards the system shows too."""
        self.card |= {"boot_id": "second"} | truth
        self.device["bitstream_id"] = f"{self.card['bitstream_id']:#x}"
        self.device["bmc_build_version"] = self.card["bmc_version"]
        self.host["reboot_needed"] = False
        self.alarm = any(status != "completed" for status in self.states.values())
        self.look(600)

    def end(self, state: str = "finished") -> ScenarioJudgement:
        self.add(ScenarioEnded(scenario="made-up", state=state))
        return judge_scenario(self.records)


def worst(story: Story, reporter: str) -> str:
    return story.end().verdicts[reporter].value


def diverged(judged: ScenarioJudgement) -> list[str]:
    return [str(verdict) for verdict in judged.divergences if verdict.kind is not VerdictKind.UNVERIFIABLE]
