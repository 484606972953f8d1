"""The routes of dcmanager's API (section 5.4): method, path, and the method of its API that answers."""

from __future__ import annotations

from typing import Final

_STRATEGY: Final = "/v1.0/sw-update-strategy"
_ROUTES: Final = (
    ("GET", "/v1.0/subclouds", "subclouds"),
    ("GET", "/v1.0/subclouds/{ref}", "subcloud"),
    ("GET", "/v1.0/subclouds/{ref}/detail", "subcloud_detail"),
    ("PATCH", "/v1.0/subclouds/{ref}", "change_subcloud"),
    ("GET", "/v1.0/subcloud-groups", "groups"),
    ("POST", "/v1.0/subcloud-groups", "create_group"),
    ("GET", "/v1.0/subcloud-groups/{ref}", "group"),
    ("GET", "/v1.0/subcloud-groups/{ref}/subclouds", "group_subclouds"),
    ("GET", _STRATEGY, "strategy"),
    ("POST", _STRATEGY, "create_strategy"),
    ("DELETE", _STRATEGY, "delete_strategy"),
    ("GET", f"{_STRATEGY}/steps", "steps"),
    ("GET", f"{_STRATEGY}/steps/{{cloud}}", "step"),
    ("POST", f"{_STRATEGY}/actions", "act"),
)
#: Each is there with a slash at its end as well.
DCMANAGER_ROUTES: Final = tuple(
    (method, path + end, name) for method, path, name in _ROUTES for end in ("", "/")
)
