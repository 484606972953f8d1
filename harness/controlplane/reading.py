"""From what a way in shows of an object, JSON or text of a table, to the data that it is.

A key that is not shown stays Unknown. Text of a table is Python's: ``None``, ``True``, ``[{'k': 'v'}]``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, Final, TypeVar

from harness.controlplane.cloud_protocol import CloudSaid, Step, Strategy, Subcloud
from harness.controlplane.protocol import (
    EVERY_DEVICE,
    Alarm,
    DeviceImageState,
    DeviceLabel,
    Label,
    PciDevice,
    Said,
)
from harness.errors import ControlPlaneError
from harness.judgement.values import Unknown, Value

S = TypeVar("S", bound=Said | CloudSaid)

#: Field -> what it is called where that differs: in JSON, and in tables.
_IN_JSON: Final[Mapping[type, Mapping[str, str]]] = {
    PciDevice: {
        "address": "pciaddr", "class_id": "pclass_id", "vendor_id": "pvendor_id", "device_id": "pdevice_id",
        "class_name": "pclass", "vendor_name": "pvendor", "device_name": "pdevice",
    },
    Subcloud: {
        "management": "management-state", "availability": "availability-status",
        "deploy_status": "deploy-status", "sync": "sync_status", "backup_status": "backup-status",
        "prestage_status": "prestage-status",
    },
    Strategy: {
        "subcloud_apply_type": "subcloud-apply-type", "max_parallel_subclouds": "max-parallel-subclouds",
        "stop_on_failure": "stop-on-failure", "created_at": "created-at", "updated_at": "updated-at",
    },
    Step: {"started_at": "started-at", "finished_at": "finished-at"},
}  # fmt: skip
_IN_TABLES: Final[Mapping[type, Mapping[str, str]]] = {
    PciDevice: {
        "class_id": "class id", "vendor_id": "vendor id", "device_id": "device id",
        "class_name": "class name", "vendor_name": "vendor name", "device_name": "device name",
    },
    DeviceImageState: {
        "address": "PCI device address", "image_uuid": "Device image uuid",
        "update_start_time": "Update start time",
    },
    Alarm: {
        "alarm_id": "Alarm ID", "reason_text": "Reason Text", "entity_instance_id": "Entity ID",
        "severity": "Severity", "timestamp": "Time Stamp", "uuid": "UUID",
    },
    DeviceLabel: {"device": "PCI device name", "label_key": "label key", "label_value": "label value"},
    Strategy: {
        "type": "strategy type", "subcloud_apply_type": "subcloud apply type",
        "max_parallel_subclouds": "max parallel subclouds", "stop_on_failure": "stop on failure",
    },
}  # fmt: skip
_FLAGS: Final = {"applied", "bmc", "retimer_included", "enabled", "reboot_needed", "stop_on_failure"}
_NUMBERS: Final = {
    "revoke_key_id",
    "numa_node",
    "sriov_totalvfs",
    "sriov_numvfs",
    "id",
    "max_parallel_subclouds",
}
_NUMBER: Final = re.compile("-?[0-9]{1,18}")
_WORDS: Final = {"True": True, "False": False}


def from_json(kind: type[S], shown: Any, **more: Any) -> S:
    """Return the object that ``shown`` is. ``more``: fields that were found elsewhere.

    :raises ControlPlaneError: it is no such object.
    """
    if not isinstance(shown, Mapping):
        raise ControlPlaneError(f"No {kind.__name__} was answered, but {str(shown)[:80]!r}.")
    renamed = _IN_JSON.get(kind, {})
    values = {
        field.name: _of_json(field.name, shown[key])
        for field in fields(kind)
        if (key := renamed.get(field.name, field.name)) in shown
    }
    return _made(kind, values | more)


def from_table(kind: type[S], row: Mapping[str, Value[str]], **more: Any) -> S:
    """Return the object of a row, or of the properties, of a table.

    :raises ControlPlaneError: what must be shown of it is not there.
    """
    renamed = _IN_TABLES.get(kind, {})
    values = {
        field.name: of_text(field.name, row[key])
        for field in fields(kind)
        if (key := renamed.get(field.name, field.name)) in row
    }
    return _made(kind, values | more)


def _made(kind: type[S], values: dict[str, Any]) -> S:
    for field in fields(kind):
        if field.default is MISSING and not (isinstance(values.get(field.name), str) and values[field.name]):
            raise ControlPlaneError(
                f"A {kind.__name__} without {field.name} was shown: {str(values)[:200]}.",
                hint="Nothing can be said of it; see whether the release is one that is known.",
            )
    return kind(**values)


def _of_json(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name == "applied_labels":
        return _labels(value)
    if name in _FLAGS:
        return value if isinstance(value, bool) else Unknown(f"no boolean: {value!r}")
    if name in _NUMBERS:
        whole = isinstance(value, int) and not isinstance(value, bool)
        return value if whole else Unknown(f"no number: {value!r}")
    return value if isinstance(value, str) else str(value)


def of_text(name: str, text: Value[str]) -> Any:
    """Return what the ``text`` of a cell stands for in the field ``name``; the text itself in most."""
    if isinstance(text, Unknown):
        return text
    if text == "None":
        return None
    if name == "applied_labels":
        try:
            return _labels(ast.literal_eval(text))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return Unknown(f"no list of labels: {text!r}")
    if name in _FLAGS:
        return _WORDS.get(text, Unknown(f"no boolean: {text!r}"))
    if name in _NUMBERS:
        return int(text) if _NUMBER.fullmatch(text.strip()) else Unknown(f"no number: {text!r}")
    return text


def _labels(value: Any) -> Value[tuple[Label, ...]]:
    """Return labels from one-key dictionaries; an empty one stands for every device (section 4.1)."""
    found: list[Label] = []
    if not isinstance(value, list):
        return Unknown(f"no list of labels: {value!r}")
    for entry in value:
        pairs = list(entry.items()) if isinstance(entry, Mapping) else None
        if pairs == []:
            found.append(EVERY_DEVICE)
        elif pairs is None or len(pairs) != 1:
            return Unknown(f"no list of labels: {value!r}")
        else:
            found.append((str(pairs[0][0]), str(pairs[0][1])))
    return tuple(found)
