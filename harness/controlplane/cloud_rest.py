"""The REST way into dcmanager, which orchestrates subclouds (fact sheet of StarlingX, section 5.4)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from harness.controlplane.changes import PermitMaker
from harness.controlplane.cloud_protocol import (
    FIRMWARE,
    Step,
    Strategy,
    StrategyChange,
    Subcloud,
    together,
)
from harness.controlplane.connections import json_body
from harness.controlplane.reading import from_json
from harness.controlplane.session import Login, Session
from harness.errors import ControlPlaneError, NoSuchRecordError
from harness.hosts.permits import genuine
from harness.judgement.records import Evidence
from harness.judgement.values import Unknown, Value

_STRATEGY: Final = "/sw-update-strategy"
_OF_FIRMWARE: Final = f"?type={FIRMWARE}"
#: Option -> what it is called in a request.
_OPTIONS: Final = {
    "subcloud_apply_type": "subcloud-apply-type",
    "max_parallel": "max-parallel-subclouds",
    "stop_on_failure": "stop-on-failure",
    "group": "subcloud_group",
    "cloud_name": "cloud_name",
}


class CloudRest:
    """Asks one system controller over HTTP.

    :param name: the controller's name in the inventory. :param login: in the region that has dcmanager.
    :param deadline: seconds for one request with its repetitions.
    """

    reporter: Final = "dcmanager"

    def __init__(self, name: str, login: Login, *, deadline: float = 60.0) -> None:
        self.name = name
        self.evidence = Evidence("", "")
        self._session = Session(name, login, deadline=deadline)

    def close(self) -> None:
        """Close the connections; may be called twice."""
        self._session.close()

    # -- reading --------------------------------------------------------------------------------------

    def subclouds(self) -> list[Subcloud]:
        """Return all subclouds."""
        return [_subcloud(entry) for entry in self._objects("/subclouds/", "subclouds")]

    def subcloud(self, name: str) -> Subcloud:
        """Return one subcloud, with what there is of each endpoint."""
        return _subcloud(self._get(f"/subclouds/{quote(name, safe='')}"))

    def strategy(self) -> Strategy | None:
        """Return the firmware strategy; None where there is none."""
        try:
            return from_json(Strategy, self._get(f"{_STRATEGY}{_OF_FIRMWARE}"))
        except NoSuchRecordError:
            return None

    def steps(self) -> list[Step]:
        """Return the steps of the strategy; none where there is no strategy."""
        return [from_json(Step, entry) for entry in self._objects(f"{_STRATEGY}/steps", "strategy-steps")]

    def progress(self) -> list[Strategy | Step]:
        """Return the strategy and its steps; nothing where there is no strategy."""
        strategy, said = self.strategy(), self.evidence
        if strategy is None:
            return []
        steps = self.steps()
        self.evidence = together(said, self.evidence)
        return [strategy, *steps]

    def step(self, cloud: str) -> Step:
        """Return the step of one subcloud."""
        return from_json(Step, self._get(f"{_STRATEGY}/steps/{quote(cloud, safe='')}"))

    # -- changing -------------------------------------------------------------------------------------

    def carry_out(self, change: StrategyChange, permits: PermitMaker) -> Strategy:
        """Carry out a change once, with the one request that its permit covers."""
        method, path, body = _request(change)
        words = (method, path, json.dumps(body))
        permit = genuine(permits.command(self.name, words))
        permit.check_command(self.name, words)
        permit.spend()
        carried = None if body is None else json_body(body)
        answer, text = self._session.ask(method, path, service="dcmanager", body=carried)
        self.evidence = Evidence(text, f"{method} {path}")
        return from_json(Strategy, answer)

    # -- asking ---------------------------------------------------------------------------------------

    def _get(self, path: str) -> Any:
        answer, text = self._session.ask("GET", path, service="dcmanager", names=True)
        self.evidence = Evidence(text, f"GET {path}")
        return answer

    def _objects(self, path: str, key: str) -> list[Mapping[str, Any]]:
        answer = self._get(path)
        found = answer.get(key) if isinstance(answer, dict) else None
        if not isinstance(found, Sequence) or not all(isinstance(entry, dict) for entry in found):
            raise ControlPlaneError(f"{self.name} answers no list of {key} to {path}: {str(answer)[:120]}.")
        return list(found)


def _request(change: StrategyChange) -> tuple[str, str, Any]:
    if change.act == "strategy-create":
        given = {_OPTIONS[name]: value for name, value in change.options.given().items()}
        if change.options.stop_on_failure:
            given["stop-on-failure"] = "true"
        return "POST", f"{_STRATEGY}/", {"type": FIRMWARE, **given}
    if change.act == "strategy-delete":
        return "DELETE", f"{_STRATEGY}{_OF_FIRMWARE}", None
    return "POST", f"{_STRATEGY}/actions{_OF_FIRMWARE}", {"action": change.act.removeprefix("strategy-")}


def _subcloud(entry: Any) -> Subcloud:
    """Return a subcloud with its endpoints, of which firmware is one."""
    shown = entry.get("endpoint_sync_status", ()) if isinstance(entry, Mapping) else ()
    endpoints: Value[dict[str, str]] = Unknown("not shown by this release")
    if shown:
        try:
            endpoints = {str(one["endpoint_type"]): str(one["sync_status"]) for one in shown}
        except (TypeError, KeyError):
            endpoints = Unknown(f"no statuses of endpoints: {str(shown)[:80]}")
    firmware = endpoints if isinstance(endpoints, Unknown) else endpoints.get(FIRMWARE)
    missing = Unknown("no status of the endpoint firmware is shown")
    return from_json(
        Subcloud,
        entry,
        endpoint_sync=endpoints,
        firmware_sync_status=missing if firmware is None else firmware,
    )
