"""dcmanager's API as functions: what each of its routes answers (section 5.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from harness.emulator.distributed_cloud.orchestrator import BadRequest
from harness.emulator.distributed_cloud.store import MANAGED, UNMANAGED
from harness.emulator.starlingx.answers import Refused
from harness.emulator.starlingx.database import Row
from harness.emulator.starlingx.sysinv import Answer, Request
from harness.emulator.starlingx.views import SOFTWARE_VERSIONS

if TYPE_CHECKING:
    from harness.emulator.distributed_cloud.cloud import Cloud

#: Of these only firmware is emulated.
_TYPES: Final = ("firmware", "kube-rootca-update", "kubernetes", "patch", "prestage", "sw-deploy")
_MOST_PARALLEL: Final = 500
#: Status -> what the page of an error says before its text.
_EXPLANATIONS: Final = {
    400: "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    404: "The resource could not be found.",
    422: "Unable to process the contained instructions",
    503: "The server is currently unavailable. Please try again at a later time.",
}
_PAGE: Final = """\
<html>
 <head>
  <title>{title}</title>
 </head>
 <body>
  <h1>{title}</h1>
  {explanation}<br /><br />
{text}


 </body>
</html>"""


class Abort(Refused):
    """dcmanager does not do it: a page says why, or JSON where nothing else is accepted."""

    def body(self) -> dict[str, Any]:
        """Return the body for a client that takes JSON alone."""
        return {"status": self.status, "title": self._title, "description": self.text}

    def page(self) -> str:
        """Return the body for every other client."""
        title = f"{self.status} {self._title}"
        return _PAGE.format(title=title, explanation=_EXPLANATIONS[self.status], text=escape(self.text))

    @property
    def _title(self) -> str:
        return HTTPStatus(self.status).phrase


class DcmanagerApi:
    """The API of one dcmanager. Every method takes a request and what its path names."""

    def __init__(self, cloud: Cloud) -> None:
        """:raises Abort: dcmanager does not run."""
        if not cloud.runs:
            raise Abort(503, "dcmanager is not running")
        self._cloud = cloud
        self._store = cloud.store

    # -- subclouds ------------------------------------------------------------------------------

    def subclouds(self, request: Request) -> Answer:
        """GET subclouds."""
        return 200, {"subclouds": [self._listed(row) for row in self._store.subclouds()]}

    def _listed(self, row: Row) -> dict[str, Any]:
        shown = self._shown(row)
        return shown | {"sync_status": self._store.overall(shown)}

    def _shown(self, row: Row) -> dict[str, Any]:
        return self._store.show_subcloud(row, SOFTWARE_VERSIONS[self._cloud.defects.release])

    def subcloud(self, request: Request, ref: str) -> Answer:
        """GET subclouds/{name or id}."""
        return 200, self._shown(self._subcloud(ref))

    def subcloud_detail(self, request: Request, ref: str) -> Answer:
        """GET subclouds/{name or id}/detail; what it adds is not emulated, and says so."""
        shown = self._shown(self._subcloud(ref))
        more = {"oam_floating_ip": "unavailable", "deploy_config_sync_status": "unknown"}
        return 200, shown | more | {"region_name": shown["region-name"]}

    def _subcloud(self, ref: str) -> Row:
        row = self._store.subcloud(ref)
        if row is None:
            raise Abort(404, "Subcloud not found")
        return row

    def change_subcloud(self, request: Request, ref: str) -> Answer:
        """PATCH subclouds/{name or id}: managed or not, and what describes it."""
        row = self._subcloud(ref)
        given = _object(request)
        state = given.get("management-state")
        if state not in (None, MANAGED, UNMANAGED):
            raise Abort(400, "Invalid management-state")
        values: dict[str, Any] = {name: given[name] for name in ("description", "location") if name in given}
        if given.get("group_id") is not None:
            group = self._store.group(str(given["group_id"]))
            if group is None:
                raise Abort(400, "Invalid group")
            values["group_id"] = group["id"]
        if not values and state is None:
            raise Abort(422, "nothing to update")
        if values:
            self._store.rows.change("subclouds", row["id"], **values)
        if state is not None:
            self._manage(row, state)
        return 200, self._shown(self._subcloud(str(row["id"])))

    def _manage(self, row: Row, state: str) -> None:
        if row["management_state"] == state:
            raise Abort(400, f"Bad subcloud request: Subcloud is already {state}")
        self._cloud.auditing.manage(row, state)

    # -- groups (the routes besides the strategy's own option are inferred) -----------------------

    def groups(self, request: Request) -> Answer:
        """GET subcloud-groups."""
        rows = self._store.rows.all("subcloud_groups")
        return 200, {"subcloud_groups": [self._store.show_group(row) for row in rows]}

    def group(self, request: Request, ref: str) -> Answer:
        """GET subcloud-groups/{name or id}."""
        return 200, self._store.show_group(self._group(ref))

    def group_subclouds(self, request: Request, ref: str) -> Answer:
        """GET subcloud-groups/{name or id}/subclouds."""
        rows = self._store.rows.all("subclouds", group_id=self._group(ref)["id"])
        return 200, {"subclouds": [self._listed(row) for row in rows]}

    def _group(self, ref: str) -> Row:
        row = self._store.group(ref)
        if row is None:
            raise Abort(404, "Subcloud Group not found")
        return row

    def create_group(self, request: Request) -> Answer:
        """POST subcloud-groups."""
        given = _object(request)
        if not given.get("name") or self._store.group(str(given["name"])) is not None:
            raise Abort(400, "Invalid group name")
        row = self._store.rows.add(
            "subcloud_groups",
            name=str(given["name"]),
            description=given.get("description", "No description provided"),
            update_apply_type=_apply_type(given.get("update_apply_type")) or "parallel",
            max_parallel_subclouds=_parallel(given.get("max_parallel_subclouds", 2)),
        )
        return 200, self._store.show_group(row)

    # -- strategy -------------------------------------------------------------------------------

    def strategy(self, request: Request) -> Answer:
        """GET sw-update-strategy."""
        return 200, self._store.show_strategy(self._strategy(request))

    def _strategy(self, request: Request) -> Row:
        kind = request.query.get("type")
        row = self._store.strategy(kind)
        if row is None:
            raise Abort(404, f"Strategy of type '{kind}' not found" if kind else "Strategy not found")
        return row

    def create_strategy(self, request: Request) -> Answer:
        """POST sw-update-strategy."""
        given = _object(request)
        kind = given.get("type")
        if not kind:
            raise Abort(400, "type required")
        if kind not in _TYPES:
            raise Abort(400, "type invalid")
        how = _apply_type(given.get("subcloud-apply-type"))
        parallel = given.get("max-parallel-subclouds")
        if parallel is not None:
            _parallel(parallel)
        if given.get("stop-on-failure") not in (None, "true", "false"):
            raise Abort(400, "stop-on-failure invalid")
        if given.get("force") is not None:
            raise Abort(400, "force invalid")
        if given.get("subcloud_group") is not None:
            self._check_group(given, chosen=how is not None or parallel is not None)
        made = self._ask("create", kind, lambda: self._cloud.orchestrator.create(given))
        return 200, self._store.show_strategy(made)

    def _check_group(self, given: Mapping[str, Any], *, chosen: bool) -> None:
        if given.get("cloud_name") is not None:
            raise Abort(400, "cloud_name and subcloud_group are mutually exclusive")
        if chosen:
            raise Abort(
                400,
                "subcloud-apply-type and max-parallel-subclouds are not supported when subcloud_group is "
                "applied",
            )
        if self._store.group(str(given["subcloud_group"])) is None:
            raise Abort(400, "Invalid group_id")

    def act(self, request: Request) -> Answer:
        """POST sw-update-strategy/actions."""
        action = _object(request).get("action")
        orchestrator = self._cloud.orchestrator
        acts = {"apply": orchestrator.apply, "abort": orchestrator.abort}
        if action not in acts:
            raise Abort(400, "action required" if action is None else "action invalid")
        return self._change(request, str(action), acts[str(action)])

    def delete_strategy(self, request: Request) -> Answer:
        """DELETE sw-update-strategy."""
        return self._change(request, "delete", self._cloud.orchestrator.delete)

    def _change(self, request: Request, verb: str, act: Callable[[Row], None]) -> Answer:
        kind = request.query.get("type")
        row = self._store.strategy(kind)
        if row is None:
            text = f"Strategy with type {kind} doesn't exist."
            raise Abort(422, f"Unable to {verb} strategy of type '{kind}': {text}")
        self._ask(verb, kind, lambda: act(row))
        return 200, self._store.show_strategy(self._strategy(request))

    @staticmethod
    def _ask(verb: str, kind: str | None, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except BadRequest as error:
            raise Abort(422, f"Unable to {verb} strategy of type '{kind}': {error}") from error

    def steps(self, request: Request) -> Answer:
        """GET sw-update-strategy/steps."""
        return 200, {"strategy-steps": [self._store.show_step(row) for row in self._store.steps()]}

    def step(self, request: Request, cloud: str) -> Answer:
        """GET sw-update-strategy/steps/{name of a subcloud}."""
        subcloud = self._store.rows.one("subclouds", name=cloud)
        row = self._store.step(subcloud["id"]) if subcloud else None
        if row is None:
            raise Abort(404, "Strategy step not found")
        return 200, self._store.show_step(row)


def _object(request: Request) -> dict[str, Any]:
    """Return the body: an object, or the fields of a form. :raises Abort: there is none."""
    given = request.body if isinstance(request.body, dict) else dict(request.fields)
    if not given:
        raise Abort(400, "Body required")
    return given


def _apply_type(given: Any) -> str | None:
    if given not in (None, "parallel", "serial"):
        raise Abort(400, "subcloud-apply-type invalid")
    return None if given is None else str(given)


def _parallel(given: Any) -> int:
    try:
        number = int(given)
    except (TypeError, ValueError):
        number = 0
    if not 1 <= number <= _MOST_PARALLEL:
        raise Abort(400, "max-parallel-subclouds invalid")
    return number
