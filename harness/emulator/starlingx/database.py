"""The database of one system: sysinv's tables of hosts, devices, images, labels and states, in SQLite.

Each statement is a transaction of its own, as sysinv's are: a request that fails half-way leaves its first
half done (section 4.2).
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

Row = dict[str, Any]

_COMMON: Final = (
    "id INTEGER PRIMARY KEY AUTOINCREMENT, uuid TEXT UNIQUE NOT NULL, created_at TEXT, updated_at TEXT"
)
#: Table -> its columns and keys. What happens to an image's labels when a device takes its labels with it is
#: inferred: they go. The other references of what is destroyed become NULL, as stated (section 4.8).
_TABLES: Final = {
    "i_host": """hostname TEXT, personality TEXT, subfunctions TEXT, administrative TEXT, operational TEXT,
        availability TEXT, invprovision TEXT, task TEXT, device_image_update TEXT,
        reboot_needed INTEGER NOT NULL DEFAULT 0""",
    "pci_devices": """host_id INTEGER NOT NULL REFERENCES i_host(id) ON DELETE CASCADE, name TEXT,
        pciaddr TEXT, pclass_id TEXT, pvendor_id TEXT, pdevice_id TEXT, pclass TEXT, pvendor TEXT,
        pdevice TEXT, psvendor TEXT, psdevice TEXT, numa_node INTEGER,
        sriov_totalvfs INTEGER, sriov_numvfs INTEGER,
        sriov_vfs_pci_address TEXT, sriov_vf_driver TEXT, sriov_vf_pdevice_id TEXT, driver TEXT,
        enabled INTEGER, extra_info TEXT""",
    "fpga_devices": """host_id INTEGER NOT NULL REFERENCES i_host(id) ON DELETE CASCADE,
        pci_id INTEGER NOT NULL UNIQUE REFERENCES pci_devices(id) ON DELETE CASCADE, pciaddr TEXT,
        bmc_build_version TEXT, bmc_fw_version TEXT, retimer_a_version TEXT, retimer_b_version TEXT,
        root_key TEXT, revoked_key_ids TEXT, boot_page TEXT, bitstream_id TEXT""",
    "device_images": """bitstream_type TEXT, pci_vendor TEXT, pci_device TEXT, name TEXT, description TEXT,
        image_version TEXT, applied INTEGER NOT NULL DEFAULT 0, capabilities TEXT, bitstream_id TEXT,
        key_signature TEXT, revoke_key_id INTEGER, bmc INTEGER, retimer_included INTEGER""",
    "device_labels": """host_id INTEGER REFERENCES i_host(id) ON DELETE CASCADE,
        pcidevice_id INTEGER REFERENCES pci_devices(id) ON DELETE CASCADE, label_key TEXT, label_value TEXT,
        capabilities TEXT""",
    "device_image_labels": """image_id INTEGER REFERENCES device_images(id) ON DELETE CASCADE,
        label_id INTEGER REFERENCES device_labels(id) ON DELETE CASCADE, status TEXT, capabilities TEXT,
        UNIQUE (image_id, label_id)""",
    "device_image_state": """host_id INTEGER REFERENCES i_host(id) ON DELETE CASCADE,
        pcidevice_id INTEGER REFERENCES pci_devices(id) ON DELETE CASCADE,
        image_id INTEGER REFERENCES device_images(id) ON DELETE SET NULL, status TEXT, update_start_time TEXT,
        capabilities TEXT""",
    "alarms": """alarm_id TEXT, entity_instance_id TEXT, severity TEXT, reason_text TEXT, repair TEXT,
        mgmt_affecting INTEGER, UNIQUE (alarm_id, entity_instance_id)""",
    "registry_images": "name TEXT, tag TEXT, UNIQUE (name, tag)",
    "tokens": "token TEXT UNIQUE, user TEXT, project TEXT, expires REAL",
}  # fmt: skip
_BOOLEANS: Final = {"applied", "bmc", "retimer_included", "enabled", "reboot_needed", "mgmt_affecting"}


class Database:
    """The rows of one system. Safe to use from any thread, one statement at a time.

    ``now``: the lab time for created_at and updated_at, as the service shows times. ``new_uuid``: of new
    rows. ``tables``: what it holds, each with its columns and keys; sysinv's where nothing is said.
    """

    def __init__(
        self,
        path: Path | None,
        now: Callable[[], str],
        new_uuid: Callable[[], str],
        tables: Mapping[str, str] = _TABLES,
    ) -> None:
        self._path = path
        self._now = now
        self._new_uuid = new_uuid
        self._lock = threading.RLock()
        self._link: sqlite3.Connection | None = None
        self._closed = False
        self._changes: Counter[str] = Counter()
        for table, columns in tables.items():
            self._run(f"CREATE TABLE IF NOT EXISTS {table} ({_COMMON}, {columns})", [])

    def close(self) -> None:
        """Close the file for good."""
        with self._lock:
            self._closed = True
            self._let_go()
        _OPEN.forget(self)

    def rest(self) -> bool:
        """Close the file until it is needed again; return whether it is closed. Never waits."""
        if self._path is None or not self._lock.acquire(blocking=False):
            return False
        try:
            self._let_go()
        finally:
            self._lock.release()
        return True

    def _let_go(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _linked(self) -> sqlite3.Connection:
        if self._closed:
            raise sqlite3.ProgrammingError("Cannot operate on a closed database.")
        if self._link is None:
            link = self._link = sqlite3.connect(
                str(self._path or ":memory:"), check_same_thread=False, isolation_level=None
            )
            link.row_factory = sqlite3.Row
            # A killed process loses nothing of it; that the machine itself dies no lab survives.
            link.executescript("PRAGMA synchronous=OFF; PRAGMA journal_mode=WAL; PRAGMA foreign_keys=ON;")
        _OPEN.used(self)
        return self._link

    def add(self, table: str, **values: Any) -> Row:
        """Insert a row and return it. :raises sqlite3.IntegrityError: it breaks a constraint."""
        full = {"uuid": self._new_uuid(), "created_at": self._now()} | values
        marks = ", ".join("?" * len(full))
        with self._lock:
            self._changes[table] += 1
            done = self._linked().execute(
                f"INSERT INTO {table} ({', '.join(full)}) VALUES ({marks})", list(full.values())
            )
            found = self.one(table, id=done.lastrowid)
        assert found is not None
        return found

    def change(self, table: str, row_id: int, **values: Any) -> None:
        """Set columns of a row; nothing where it is gone."""
        full = values | {"updated_at": self._now()}
        sets = ", ".join(f"{name} = ?" for name in full)
        self._changes[table] += 1
        self._run(f"UPDATE {table} SET {sets} WHERE id = ?", [*full.values(), row_id])

    def remove(self, table: str, row_id: int) -> None:
        """Delete a row, and what the schema says goes with it."""
        self._changes[table] += 1
        self._run(f"DELETE FROM {table} WHERE id = ?", [row_id])

    def changes(self, table: str) -> int:
        """Return how often rows of ``table`` itself were added, changed or removed so far."""
        return self._changes[table]

    def all(self, table: str, **where: Any) -> list[Row]:
        """Return the rows with these values, by id; a value None is NULL."""
        tests = [f"{name} IS ?" for name in where]
        clause = f" WHERE {' AND '.join(tests)}" if tests else ""
        return [
            _row(row) for row in self._run(f"SELECT * FROM {table}{clause} ORDER BY id", [*where.values()])
        ]

    def one(self, table: str, **where: Any) -> Row | None:
        """Return the first row with these values."""
        return next(iter(self.all(table, **where)), None)

    def _run(self, statement: str, values: list[Any]) -> list[sqlite3.Row]:
        with self._lock:
            return self._linked().execute(statement, values).fetchall()


class _Open:
    """The databases whose files are open: beyond ``most``, those that were used longest ago are closed.

    An open one takes 0.4 MiB, and a lab may have hundreds of systems.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._databases: OrderedDict[Database, None] = OrderedDict()

    def used(self, database: Database) -> None:
        """``database`` is used just now."""
        with self._lock:
            self._databases[database] = None
            self._databases.move_to_end(database)
            over = len(self._databases) - self._most
            for other in list(islice(self._databases, over)) if over > 0 else ():
                if other is not database and other.rest():
                    del self._databases[other]

    def forget(self, database: Database) -> None:
        """``database`` is closed for good."""
        with self._lock:
            self._databases.pop(database, None)


_OPEN: Final = _Open(most=32)


def _row(found: sqlite3.Row) -> Row:
    row = dict(found)
    for name in _BOOLEANS & row.keys():
        row[name] = None if row[name] is None else bool(row[name])
    if "capabilities" in row:
        row["capabilities"] = json.loads(row["capabilities"] or "{}")
    return row
