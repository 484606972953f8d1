"""dcmanager's own database: subclouds, their statuses and groups, the one strategy and its steps (5.4)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from harness.emulator.distributed_cloud.firmware_audit import IN_SYNC, OUT_OF_SYNC, UNKNOWN
from harness.emulator.starlingx.database import Database, Row

MANAGED: Final = "managed"
UNMANAGED: Final = "unmanaged"
ONLINE: Final = "online"
OFFLINE: Final = "offline"
FIRMWARE: Final = "firmware"
ENDPOINTS: Final = (
    "platform", "identity", "dc-cert", FIRMWARE, "kubernetes", "kube-rootca", "software",
)  # fmt: skip
_TABLES: Final = {
    "subcloud_groups": """name TEXT UNIQUE, description TEXT, update_apply_type TEXT,
        max_parallel_subclouds INTEGER""",
    "subclouds": """name TEXT UNIQUE, description TEXT, location TEXT, management_state TEXT,
        availability_status TEXT, deploy_status TEXT, error_description TEXT,
        audit_fail_count INTEGER NOT NULL DEFAULT 0, firmware_audit_requested INTEGER NOT NULL DEFAULT 0,
        group_id INTEGER REFERENCES subcloud_groups(id)""",
    "subcloud_status": """subcloud_id INTEGER REFERENCES subclouds(id) ON DELETE CASCADE, endpoint_type TEXT,
        sync_status TEXT, UNIQUE (subcloud_id, endpoint_type)""",
    "sw_update_strategy": """type TEXT, subcloud_apply_type TEXT, max_parallel_subclouds INTEGER,
        stop_on_failure INTEGER, state TEXT""",
    "strategy_steps": """subcloud_id INTEGER UNIQUE REFERENCES subclouds(id) ON DELETE CASCADE,
        stage INTEGER, state TEXT, details TEXT, started_at TEXT, finished_at TEXT""",
}  # fmt: skip
#: How a group runs that says nothing else, and a strategy without a group (section 5.4).
DEFAULT_PARALLEL: Final = 2


class Store:
    """The rows of one dcmanager. ``now``: lab time in seconds."""

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self._now = now
        self.rows = Database(path, self.moment, lambda: str(uuid.uuid4()), _TABLES)

    def moment(self) -> str:
        """Return the lab time as dcmanager shows times."""
        return datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%d %H:%M:%S.%f")

    def enroll(self, names: Iterable[str], group: str) -> None:
        """Make subclouds known that are not yet: deployed, managed, online and in sync, in one group."""
        rows = self.rows
        first = rows.one("subcloud_groups", name=group) or rows.add(
            "subcloud_groups",
            name=group,
            description="Default Subcloud Group",
            update_apply_type="parallel",
            max_parallel_subclouds=DEFAULT_PARALLEL,
        )
        for name in names:
            if self.subcloud(name) is None:
                row = rows.add(
                    "subclouds",
                    name=name,
                    management_state=MANAGED,
                    availability_status=ONLINE,
                    deploy_status="complete",
                    error_description="No errors present",
                    group_id=first["id"],
                )
                for endpoint in ENDPOINTS:
                    rows.add(
                        "subcloud_status",
                        subcloud_id=row["id"],
                        endpoint_type=endpoint,
                        sync_status=IN_SYNC,
                    )

    # -- subclouds ------------------------------------------------------------------------------

    def subclouds(self) -> list[Row]:
        """Return the subclouds, by id."""
        return self.rows.all("subclouds")

    def subcloud(self, ref: str) -> Row | None:
        """Return a subcloud by its id or name."""
        return self._by_ref("subclouds", ref)

    def group(self, ref: str) -> Row | None:
        """Return a group by its id or name."""
        return self._by_ref("subcloud_groups", ref)

    def _by_ref(self, table: str, ref: str) -> Row | None:
        return self.rows.one(table, id=int(ref)) if ref.isdecimal() else self.rows.one(table, name=ref)

    def statuses(self, subcloud_id: int) -> dict[str, str]:
        """Return endpoint -> sync status."""
        rows = self.rows.all("subcloud_status", subcloud_id=subcloud_id)
        return {row["endpoint_type"]: row["sync_status"] for row in rows}

    def firmware(self) -> dict[int, str]:
        """Return id of a subcloud -> its firmware sync status."""
        rows = self.rows.all("subcloud_status", endpoint_type=FIRMWARE)
        return {row["subcloud_id"]: row["sync_status"] for row in rows}

    def set_status(self, subcloud_id: int, endpoint: str, status: str) -> None:
        """Set one sync status."""
        row = self.rows.one("subcloud_status", subcloud_id=subcloud_id, endpoint_type=endpoint)
        if row is not None and row["sync_status"] != status:
            self.rows.change("subcloud_status", row["id"], sync_status=status)

    # -- strategy -------------------------------------------------------------------------------

    def strategy(self, kind: str | None = None) -> Row | None:
        """Return the strategy, of the type ``kind`` where that is asked."""
        return self.rows.one("sw_update_strategy", **({"type": kind} if kind else {}))

    def steps(self) -> list[Row]:
        """Return the steps of the strategy, in order."""
        return self.rows.all("strategy_steps")

    def step(self, subcloud_id: int) -> Row | None:
        """Return the step of a subcloud."""
        return self.rows.one("strategy_steps", subcloud_id=subcloud_id)

    # -- what the API shows ---------------------------------------------------------------------

    def show_subcloud(self, row: Row, version: str) -> dict[str, Any]:
        """Return a subcloud with the sync status of each endpoint. ``version``: of its software."""
        subnet = f"10.{10 + row['id'] // 250}.{row['id'] % 250}"  # addresses that nothing stands at
        statuses = self.statuses(row["id"])
        return {
            "id": row["id"],
            "name": row["name"],
            "description": row["description"],
            "location": row["location"],
            "software-version": version,
            "management-state": row["management_state"],
            "availability-status": row["availability_status"],
            "deploy-status": row["deploy_status"],
            "backup-status": None,
            "backup-datetime": None,
            "error-description": row["error_description"],
            "region-name": uuid.UUID(row["uuid"]).hex,
            "management-subnet": f"{subnet}.0/24",
            "management-start-ip": f"{subnet}.2",
            "management-end-ip": f"{subnet}.50",
            "management-gateway-ip": f"{subnet}.1",
            "openstack-installed": False,
            "prestage-status": None,
            "prestage-versions": None,
            "systemcontroller-gateway-ip": "10.10.0.1",
            "data_install": None,
            "data_upgrade": None,
            "created-at": row["created_at"],
            "updated-at": row["updated_at"],
            "group_id": row["group_id"],
            "peer_group_id": None,
            "rehome_data": None,
            "endpoint_sync_status": [
                {"endpoint_type": endpoint, "sync_status": statuses.get(endpoint, UNKNOWN)}
                for endpoint in ENDPOINTS
            ],
        }

    @staticmethod
    def overall(shown: dict[str, Any]) -> str:
        """Return the one sync status of a subcloud: that of all its endpoints, or out-of-sync."""
        found = {entry["sync_status"] for entry in shown["endpoint_sync_status"]}
        return str(found.pop()) if len(found) == 1 else OUT_OF_SYNC

    def show_group(self, row: Row) -> dict[str, Any]:
        """Return a group of subclouds."""
        names = ("id", "name", "description", "update_apply_type", "max_parallel_subclouds")
        times = {"created-at": row["created_at"], "updated-at": row["updated_at"]}
        return {name: row[name] for name in names} | times

    def show_strategy(self, row: Row) -> dict[str, Any]:
        """Return a strategy."""
        return {
            "id": row["id"],
            "type": row["type"],
            "subcloud-apply-type": row["subcloud_apply_type"],
            "max-parallel-subclouds": row["max_parallel_subclouds"],
            "stop-on-failure": bool(row["stop_on_failure"]),
            "state": row["state"],
            "created-at": row["created_at"],
            "updated-at": row["updated_at"],
            "extra-args": None,
        }

    def show_step(self, row: Row) -> dict[str, Any]:
        """Return a step."""
        subcloud = self.rows.one("subclouds", id=row["subcloud_id"])
        return {
            "id": row["id"],
            "cloud": subcloud["name"] if subcloud else None,
            "stage": row["stage"],
            "state": row["state"],
            "details": row["details"],
            "started-at": row["started_at"],
            "finished-at": row["finished_at"],
            "created-at": row["created_at"],
            "updated-at": row["updated_at"],
        }
