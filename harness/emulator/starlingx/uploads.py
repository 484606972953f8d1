"""What sysinv checks of an uploaded image, in its order and words (section 2.1); never the file's content."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from harness.emulator.starlingx.answers import Unhandled, boolean
from harness.emulator.starlingx.database import Database, Row
from harness.emulator.starlingx.defects import Defects
from harness.emulator.starlingx.views import Views

FUNCTIONAL: Final = "functional"
ROOT_KEY: Final = "root-key"
KEY_REVOCATION: Final = "key-revocation"
VENDOR, DEVICE = "8086", "0b30"
_HEXADECIMAL: Final = ("pci_vendor", "pci_device", "bitstream_id", "key_signature")


class _Invalid(Exception):
    """A field is wrong. ``bare``: the answer has no key but `error`."""

    def __init__(self, text: str, *, bare: bool = False) -> None:
        super().__init__(text)
        self.bare = bare


def file_name(image: Row) -> str:
    """Return the name that an image is stored and downloaded under."""
    return f"{image['bitstream_type']}-{image['pci_vendor']}-{image['pci_device']}-{image['uuid']}.bit"


class Uploads:
    """Takes images into one system. ``folder``: where their files are."""

    def __init__(self, database: Database, defects: Defects, views: Views, folder: Path) -> None:
        self._database = database
        self._defects = defects
        self._views = views
        self._folder = folder

    def upload(
        self, fields: Mapping[str, str], filename: str | None, content: bytes | None
    ) -> dict[str, Any]:
        """Take an image; the answer says in words what was wrong with it.

        ``filename``, ``content``: of the file's part; both None where there is none.
        :raises Unhandled: what sysinv does not look for.
        """
        if content is None:
            raise Unhandled("KeyError: 'file'")
        if not filename:
            return {"success": "", "error": "Error: No file uploaded"}
        try:
            values = self._checked(fields)
        except _Invalid as problem:
            return ({} if problem.bare else {"success": ""}) | {"error": str(problem)}
        except KeyError as problem:
            raise Unhandled(f"KeyError: {problem}") from problem
        try:
            row = self._database.add("device_images", **values)
        except sqlite3.IntegrityError as problem:
            raise Unhandled(f"DBDuplicateEntry: {problem}") from problem
        unfinished = self._folder / f".{row['uuid']}.new"
        unfinished.write_bytes(content)
        unfinished.replace(self._folder / file_name(row))
        return {"success": "", "error": "", "device_image": self._views.uploaded(row)}

    def _checked(self, fields: Mapping[str, str]) -> dict[str, Any]:
        """Return the columns of the new row.

        :raises _Invalid: a field is wrong. :raises KeyError: one that must be there is not.
        """
        if (
            "uuid" in fields
            and not self._defects.on("upload-id-not-checked")
            and not _is_uuid(fields["uuid"])
        ):
            raise _Invalid("uuid must be a valid UUID")
        flags = {name: self._flag(name, fields) for name in ("bmc", "retimer_included")}
        for name in _HEXADECIMAL:
            if name in fields and not _is_hexadecimal(fields[name]):
                raise _Invalid(f"{name} must be hexadecimal")
        kind = fields["bitstream_type"]
        _check_kind(kind, fields)
        if kind != FUNCTIONAL and flags["bmc"]:
            raise _Invalid("bmc option is only applicable to functional image")
        if flags["retimer_included"] and not (kind == FUNCTIONAL and flags["bmc"]):
            raise _Invalid("retimer_included option is only applicable to functional BMC image")
        if "revoke_key_id" in fields and not fields["revoke_key_id"].isdecimal():
            raise _Invalid("revoke_key_id must be an integer")
        vendor, device = fields["pci_vendor"], fields["pci_device"]
        if (vendor, device) != (VENDOR, DEVICE) and not self._defects.on("device-id-not-checked"):
            raise _Invalid(
                f"Invalid PCI vendor/device ID: {vendor} {device}. "
                f"Supported vendor ID: {VENDOR} and supported device ID: {DEVICE}",
                bare=True,
            )
        values: dict[str, Any] = {"bitstream_type": kind, "pci_vendor": vendor, "pci_device": device}
        values |= {
            name: fields[name] for name in ("uuid", "name", "description", "image_version") if name in fields
        }
        if kind == FUNCTIONAL:
            values["bitstream_id"] = fields["bitstream_id"]
            values |= {name: bool(flag) for name, flag in flags.items()}
        elif kind == ROOT_KEY:
            values["key_signature"] = fields["key_signature"]
        else:
            values["revoke_key_id"] = int(fields["revoke_key_id"])
        return values

    def _flag(self, name: str, fields: Mapping[str, str]) -> bool | None:
        if name not in fields or self._defects.on("bmc-drops-user-image"):  # there was no such field yet
            return None
        try:
            value = boolean(fields[name])
        except ValueError:
            raise _Invalid(f"Parameter {name} must be a valid bool string") from None
        if self._defects.on("upload-booleans-fail"):
            raise Unhandled(f"StatementError: Not a boolean value: {fields[name]!r}")
        return value


def _check_kind(kind: str, fields: Mapping[str, str]) -> None:
    required = {
        FUNCTIONAL: ("bitstream_id", "functional"),
        ROOT_KEY: ("key_signature", "root key"),
        KEY_REVOCATION: ("revoke_key_id", "key revocation"),
    }
    if kind not in required:
        raise _Invalid(f"Bitstream type {kind} not supported")
    name, words = required[kind]
    if name not in fields:
        raise _Invalid(f"{name} is required for {words} bitstream type")


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _is_hexadecimal(text: str) -> bool:
    try:
        int(text, 16)
    except ValueError:
        return False
    return True
