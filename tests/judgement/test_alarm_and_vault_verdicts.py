"""The alarm of a subcloud, and the vault of its controller (StarlingX's fact sheet, 3.6 and 5.1)."""

from __future__ import annotations

import pytest

from harness.judgement.model import VerdictKind
from tests.judgement.cloud_records import (
    IMAGE_11,
    Cloud,
)

MATCH = VerdictKind.MATCH
FALSE_SUCCESS = VerdictKind.FALSE_SUCCESS
ALARM = "alarm-280.002"
UPLOAD = "controller-upload"


class TestTheAlarm:
    @pytest.mark.parametrize(
        ("status", "stands", "expected"),
        [
            ("out-of-sync", True, MATCH),
            ("in-sync", False, MATCH),
            ("unknown", False, MATCH),
            ("in-sync", True, VerdictKind.STALE),
            ("out-of-sync", False, VerdictKind.CONTRADICTION),
        ],
    )
    def test_it_stands_while_the_firmware_is_out_of_sync(
        self, one: Cloud, status: str, stands: bool, expected: VerdictKind
    ) -> None:
        one["sub"].row["firmware_sync_status"] = status
        one.alarms = {"sub"} if stands else set()
        one.look()
        assert one.kind(ALARM) is expected

    @pytest.mark.parametrize("status", ["out-of-sync", "in-sync", "unknown"])
    @pytest.mark.parametrize("first", [True, False])
    def test_one_that_changes_amid_a_look_contradicts_nothing(
        self, one: Cloud, status: str, first: bool
    ) -> None:
        one["sub"].row["firmware_sync_status"] = status
        one.alarms_before, one.alarms = ({"sub"}, set()) if first else (set(), {"sub"})
        one.look()
        assert one.kind(ALARM) is MATCH

    @pytest.mark.parametrize(
        ("status", "stands", "expected"),
        [("unknown", True, VerdictKind.STALE), ("out-of-sync", False, VerdictKind.CONTRADICTION)],
    )
    def test_one_that_does_not_is_held_to_the_status_all_the_same(
        self, one: Cloud, status: str, stands: bool, expected: VerdictKind
    ) -> None:
        one["sub"].row["firmware_sync_status"] = status
        one.alarms_before = one.alarms = {"sub"} if stands else set()
        one.look()
        assert one.kind(ALARM) is expected


class TestTheVault:
    UUID = "cbe0f5f7-f1d6-4b1b-8153-28951991d4ee"

    def test_an_image_that_no_subcloud_can_get_was_not_uploaded(self) -> None:
        cloud = Cloud("sub")
        cloud.apply(cloud.upload(IMAGE_11 | {"name": self.UUID}))
        cloud.orchestrate(sub="failed")
        assert cloud["sub"].step is not None
        path = f"/opt/dc-vault/device_images/functional-8086-0b30-{self.UUID}.bit"
        cloud["sub"].step["details"] = f"File does not exist: {path}"
        cloud.look()
        assert cloud.kind(UPLOAD) is FALSE_SUCCESS

    def test_an_image_that_a_subcloud_has_was(self, one: Cloud) -> None:
        assert one.kind(UPLOAD) is MATCH
