"""How the `system` command lays out lists: widths, wrapping, and the fall back where nothing fits.

The layouts were printed by the real command's own code, for values as long as these, letter by letter.
"""

# ruff: noqa: E501 -- tables are as wide as they are
from __future__ import annotations

import pytest

from harness.emulator.starlingx.cli_tables import listing, table, text_of

FIRST, SECOND = "0f3c1d1e-7a3c-4f0e-9f55-4f8a5e3f3a01", "1a2b3c4d-0000-4000-8000-00000000000f"
IMAGE = [
    "uuid", "bitstream_type", "pci_vendor", "pci_device", "bitstream_id", "key_signature", "revoke_key_id",
    "name", "description", "image_version",
]  # fmt: skip
STATE_LABELS = [
    "hostname", "PCI device address", "Device image uuid", "status", "Update start time", "updated_at",
]  # fmt: skip
STATE_FIELDS = ["hostname", "pciaddr", "image_uuid", "status", "update_start_time", "updated_at"]
WRAPPED_IMAGES = """\
+--------------------------------------+-------------+---------+---------+------------+------------+---------+------+-------------+----------+-------+-----------+---------+-----------------------+
| uuid                                 | bitstream_t | pci_ven | pci_dev | bitstream_ | key_signat | revoke_ | name | description | image_ve | bmc   | retimer_i | applied | applied_labels        |
|                                      | ype         | dor     | ice     | id         | ure        | key_id  |      |             | rsion    |       | ncluded   |         |                       |
+--------------------------------------+-------------+---------+---------+------------+------------+---------+------+-------------+----------+-------+-----------+---------+-----------------------+
| 0f3c1d1e-7a3c-4f0e-9f55-4f8a5e3f3a01 | functional  | 8086    | 0b30    | 12         | None       | None    | None | None        | None     | False | False     | True    | [{'location': 'lab'}, |
|                                      |             |         |         |            |            |         |      |             |          |       |           |         | {'location3': '3'},   |
|                                      |             |         |         |            |            |         |      |             |          |       |           |         | {'location4': '4'}]   |
|                                      |             |         |         |            |            |         |      |             |          |       |           |         |                       |
| 1a2b3c4d-0000-4000-8000-00000000000f | functional  | 8086    | 0b30    | 3          | None       | None    | None | None        | None     | False | False     | True    | [{'location': 'lab'}, |
|                                      |             |         |         |            |            |         |      |             |          |       |           |         | {'location3': '3'},   |
|                                      |             |         |         |            |            |         |      |             |          |       |           |         | {'location4': '4'}]   |
|                                      |             |         |         |            |            |         |      |             |          |       |           |         |                       |
+--------------------------------------+-------------+---------+---------+------------+------------+---------+------+-------------+----------+-------+-----------+---------+-----------------------+
"""
WRAPPED_STATES = """\
+--------------+--------------------+--------------------------------------+-------------+----------------------------------+---------------------------+
| hostname     | PCI device address | Device image uuid                    | status      | Update start time                | updated_at                |
+--------------+--------------------+--------------------------------------+-------------+----------------------------------+---------------------------+
| controller-0 | 0000:1b:00.0       | 0f3c1d1e-7a3c-4f0e-9f55-4f8a5e3f3a01 | in-progress | 2026-11-30T09:00:01.120394+00:00 | None                      |
| compute-0    | 0000:1b:00.0       | 0f3c1d1e-7a3c-4f0e-9f55-4f8a5e3f3a01 | failed      | None                             | None                      |
| compute-1    | 0000:1b:00.0       | 0f3c1d1e-7a3c-4f0e-9f55-4f8a5e3f3a01 | pending     | None                             | None                      |
| controller-0 | 0000:5e:00.0       | 1a2b3c4d-0000-4000-8000-00000000000f | completed   | 2026-11-30T09:00:01.120394+00:00 | 2026-11-30T09:40:00.      |
|              |                    |                                      |             |                                  | 684401+00:00              |
|              |                    |                                      |             |                                  |                           |
+--------------+--------------------+--------------------------------------+-------------+----------------------------------+---------------------------+
"""
PLAIN_IMAGES = """\
+--------------------------------------+----------------+------------+------------+--------------+---------------+---------------+------+-------------+---------------+---------+------------------------+
| uuid                                 | bitstream_type | pci_vendor | pci_device | bitstream_id | key_signature | revoke_key_id | name | description | image_version | applied | applied_labels         |
+--------------------------------------+----------------+------------+------------+--------------+---------------+---------------+------+-------------+---------------+---------+------------------------+
| 0f3c1d1e-7a3c-4f0e-9f55-4f8a5e3f3a01 | functional     | 8086       | 0b30       | 12           | None          | None          | None | None        | None          | False   | None                   |
| 1a2b3c4d-0000-4000-8000-00000000000f | functional     | 8086       | 0b30       | 3            | None          | None          | None | None        | None          | True    | [{u'location4': u'4'}] |
+--------------------------------------+----------------+------------+------------+--------------+---------------+---------------+------+-------------+---------------+---------+------------------------+
"""


def image(uuid: str, bitstream: str, *more: str) -> list[str]:
    return [uuid, "functional", "8086", "0b30", bitstream, *["None"] * 5, *more]


def test_cells_and_labels_wrap_and_a_blank_line_follows() -> None:
    names = [*IMAGE, "bmc", "retimer_included", "applied", "applied_labels"]
    labels = "[{'location': 'lab'}, {'location3': '3'}, {'location4': '4'}]"
    rows = [image(uuid, n, "False", "False", "True", labels) for uuid, n in ((FIRST, "12"), (SECOND, "3"))]
    assert listing(names, names, rows, 200) == WRAPPED_IMAGES


def test_times_break_in_the_middle() -> None:
    began = "2026-11-30T09:00:01.120394+00:00"
    rows = [
        ["controller-0", "0000:1b:00.0", FIRST, "in-progress", began, "None"],
        ["compute-0", "0000:1b:00.0", FIRST, "failed", "None", "None"],
        ["compute-1", "0000:1b:00.0", FIRST, "pending", "None", "None"],
        ["controller-0", "0000:5e:00.0", SECOND, "completed", began, "2026-11-30T09:40:00.684401+00:00"],
    ]
    assert listing(STATE_LABELS, STATE_FIELDS, rows, 200) == WRAPPED_STATES


@pytest.mark.parametrize("terminal", [80, None])
def test_what_does_not_fit_is_not_wrapped_at_all(terminal: int | None) -> None:
    names = [*IMAGE, "applied", "applied_labels"]
    rows = [image(FIRST, "12", "False", "None"), image(SECOND, "3", "True", "[{u'location4': u'4'}]")]
    assert listing(names, names, rows, terminal) == PLAIN_IMAGES


def test_no_rows_are_an_empty_line() -> None:
    assert listing(IMAGE, IMAGE, [], 80) == "\n"


def test_values_as_python_shows_them() -> None:
    labels = [{"location": "lab"}, {}]
    assert text_of(labels, python2=False) == "[{'location': 'lab'}, {}]"
    assert text_of(labels, python2=True) == "[{u'location': u'lab'}, {}]"
    assert [text_of(value, python2=True) for value in (None, True, "", 5)] == ["None", "True", "", "5"]
    assert table(("a", "bc"), [("xyz", "")]).splitlines()[1] == "| a   | bc |"


def test_columns_are_padded_by_what_is_seen() -> None:
    """Wide characters take two columns of a terminal, and marks none (the rule of wcwidth)."""
    shown = table(["name", "id"], [["画像", "1"], ["e\u0301te\u0301", "2"], ["plain", "3"]])
    assert shown == (
        "+-------+----+\n"
        "| name  | id |\n"
        "+-------+----+\n"
        "| 画像  | 1  |\n"
        "| e\u0301te\u0301   | 2  |\n"
        "| plain | 3  |\n"
        "+-------+----+\n"
    )
