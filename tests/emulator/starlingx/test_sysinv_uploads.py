"""POST of an image: always 200, the text says what was wrong, and in which order it is looked at (2.1)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from support.starlingx_lab import START, Lab, MakeLab

FUNCTIONAL = {"bitstream_type": "functional", "pci_vendor": "8086", "pci_device": "0b30", "bitstream_id": "2"}
ROOT_KEY = {"bitstream_type": "root-key", "pci_vendor": "8086", "pci_device": "0b30", "key_signature": "a1"}
REVOCATION = {
    "bitstream_type": "key-revocation",
    "pci_vendor": "8086",
    "pci_device": "0b30",
    "revoke_key_id": "5",
}


def post(lab: Lab, fields: dict[str, str], file: Any = ("image.bin", b"bytes")) -> Any:
    return lab.api("POST", "/device_images", data=fields, files={"file": file})


def without(fields: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in fields.items() if name not in names}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (FUNCTIONAL | {"uuid": "junk"}, "uuid must be a valid UUID"),
        (FUNCTIONAL | {"bmc": "maybe"}, "Parameter bmc must be a valid bool string"),
        (FUNCTIONAL | {"retimer_included": "2"}, "Parameter retimer_included must be a valid bool string"),
        (FUNCTIONAL | {"pci_vendor": "80x6"}, "pci_vendor must be hexadecimal"),
        (FUNCTIONAL | {"pci_device": "0g30"}, "pci_device must be hexadecimal"),
        (FUNCTIONAL | {"bitstream_id": "zz"}, "bitstream_id must be hexadecimal"),
        (ROOT_KEY | {"key_signature": "zz"}, "key_signature must be hexadecimal"),
        (FUNCTIONAL | {"bitstream_type": "other"}, "Bitstream type other not supported"),
        (without(FUNCTIONAL, "bitstream_id"), "bitstream_id is required for functional bitstream type"),
        (without(ROOT_KEY, "key_signature"), "key_signature is required for root key bitstream type"),
        (
            without(REVOCATION, "revoke_key_id"),
            "revoke_key_id is required for key revocation bitstream type",
        ),
        (ROOT_KEY | {"bmc": "true"}, "bmc option is only applicable to functional image"),
        (
            FUNCTIONAL | {"retimer_included": "true"},
            "retimer_included option is only applicable to functional BMC image",
        ),
        (
            FUNCTIONAL | {"bmc": "false", "retimer_included": "true"},
            "retimer_included option is only applicable to functional BMC image",
        ),
        (REVOCATION | {"revoke_key_id": "0x5"}, "revoke_key_id must be an integer"),
        # The first that is wrong is told, in the order of the checks.
        (FUNCTIONAL | {"uuid": "junk", "bmc": "maybe"}, "uuid must be a valid UUID"),
        (FUNCTIONAL | {"bmc": "maybe", "pci_vendor": "x"}, "Parameter bmc must be a valid bool string"),
        (FUNCTIONAL | {"pci_vendor": "x", "bitstream_type": "o"}, "pci_vendor must be hexadecimal"),
        (FUNCTIONAL | {"bitstream_type": "o", "pci_device": "0b31"}, "Bitstream type o not supported"),
        (
            REVOCATION | {"revoke_key_id": "x", "pci_device": "0b31"},
            "revoke_key_id must be an integer",
        ),
    ],
)
def test_wrong_field_is_told_with_status_200(lab: Lab, fields: dict[str, str], text: str) -> None:
    answer = post(lab, fields)
    assert answer.status_code == 200
    assert answer.json() == {"success": "", "error": text}
    assert lab.get("/device_images") == {"device_images": []}


@pytest.mark.parametrize("device", ["0b31", "0B30"])
def test_unsupported_device_is_told_without_success(lab: Lab, device: str) -> None:
    answer = post(lab, FUNCTIONAL | {"pci_device": device})
    assert answer.status_code == 200
    assert answer.json() == {
        "error": f"Invalid PCI vendor/device ID: 8086 {device}. "
        "Supported vendor ID: 8086 and supported device ID: 0b30"
    }


def test_file_without_a_name_is_no_file(lab: Lab) -> None:
    body = (
        b'--b\r\nContent-Disposition: form-data; name="bitstream_type"\r\n\r\nfunctional\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename=""\r\n\r\nbytes\r\n--b--\r\n'
    )
    headers = {"X-Auth-Token": lab.token, "Content-Type": "multipart/form-data; boundary=b"}
    answer = lab.ask("platform", "POST", "/v1/device_images", content=body, headers=headers)
    assert (answer.status_code, answer.json()) == (200, {"success": "", "error": "Error: No file uploaded"})


@pytest.mark.parametrize("missing", ["pci_vendor", "pci_device", "bitstream_type"])
def test_missing_field_is_a_server_error_without_json(lab: Lab, missing: str) -> None:
    answer = post(lab, without(FUNCTIONAL, missing))
    assert answer.status_code == 500
    assert not answer.headers["Content-Type"].startswith("application/json")


def test_missing_file_is_a_server_error(lab: Lab) -> None:
    answer = lab.api("POST", "/device_images", data=FUNCTIONAL, files={"other": ("a", b"b")})
    assert answer.status_code == 500


def test_reused_uuid_is_a_server_error_and_changes_nothing(lab: Lab) -> None:
    uuid = lab.upload(uuid="0f3c1d1e-7a3c-4f0e-9f55-4f8a5e3f3a01")
    assert post(lab, FUNCTIONAL | {"uuid": uuid, "bitstream_id": "3"}).status_code == 500
    assert [image["bitstream_id"] for image in lab.get("/device_images")["device_images"]] == ["2"]


def test_answer_has_every_field_of_the_new_image(lab: Lab) -> None:
    body = post(lab, FUNCTIONAL | {"name": "n", "description": "d", "image_version": "1"}).json()
    image = body.pop("device_image")
    assert body == {"success": "", "error": ""}
    UUID(image.pop("uuid"))
    assert image == {
        "id": 1,
        "bitstream_type": "functional",
        "pci_vendor": "8086",
        "pci_device": "0b30",
        "bitstream_id": "2",
        "key_signature": None,
        "revoke_key_id": None,
        "name": "n",
        "description": "d",
        "image_version": "1",
        "applied": False,
        "capabilities": {},
        "bmc": False,
        "retimer_included": False,
        "created_at": "2026-11-30T09:00:00.000000+00:00",
        "updated_at": None,
    }
    assert START == 1796029200.0


@pytest.mark.parametrize("fields", [ROOT_KEY, REVOCATION])
def test_what_does_not_apply_to_a_type_is_null(lab: Lab, fields: dict[str, str]) -> None:
    image = post(lab, fields).json()["device_image"]
    assert image["bmc"] is None
    assert image["retimer_included"] is None
    assert image["bitstream_id"] is None
    assert (image["revoke_key_id"] is None) == ("revoke_key_id" not in fields)
    assert image["revoke_key_id"] in (None, 5)


def test_file_is_stored_under_the_name_of_its_image(lab: Lab) -> None:
    uuid = lab.upload()
    file = lab.ask("files", "GET", f"/device_images/functional-8086-0b30-{uuid}.bit")
    assert (file.status_code, file.content) == (200, b"some bytes")
    assert lab.ask("files", "GET", "/device_images/none.bit").status_code == 404


def test_hexadecimal_may_have_its_prefix(lab: Lab) -> None:
    assert post(lab, FUNCTIONAL | {"bitstream_id": "0x23000410010309"}).json()["error"] == ""


def test_booleans_of_a_bmc_image(make_lab: MakeLab) -> None:
    answer = post(make_lab(), FUNCTIONAL | {"bmc": "True", "retimer_included": "true"})
    image = answer.json()["device_image"]
    assert (image["bmc"], image["retimer_included"]) == (True, True)
