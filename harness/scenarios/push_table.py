"""Tables of cells: {action at a point} x {client} -> what was measured, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.errors import ConfigurationError
from harness.faults.registry_actions import registry_action
from harness.faults.registry_points import FaultPoint
from harness.registry.clients.catalogue import PUSH_CLIENTS
from harness.scenarios.prepare import NotApplicable
from harness.yaml_text import load_plain

#: Said done and is there; said failed and is not; said done and is not; said failed and is there.
Class = Literal["ok", "fail", "loss", "false-fail"]
_EXPECTS: Mapping[Class, tuple[str, str]] = {
    "ok": ("AS_INTENDED", ""),
    "fail": ("FAILED", ""),
    "loss": ("FAILED", "FALSE_SUCCESS"),
    "false-fail": ("AS_INTENDED", "FALSE_FAILURE"),
}


@dataclass(frozen=True, slots=True)
class PushCell:
    """One cell: what ``client`` was found to do where ``action`` strikes at ``point``.

    ``measured``: what its version had in it then, such as ``skopeo 1.9.``.
    """

    client: str
    action: str
    point: str
    found: Class
    measured: str

    @property
    def id(self) -> str:
        """Readable node id, such as ``skopeo--rotate-keys--before:ping``."""
        return f"{self.client}--{self.action}--{self.point}"

    @property
    def expects(self) -> dict[str, Any]:
        """What the marker ``hil_expects`` takes."""
        outcome, verdict = _EXPECTS[self.found]
        return {"outcome": outcome, "verdicts": {self.client: verdict} if verdict else {}}

    def require_measured(self, version: str) -> None:
        """:raises NotApplicable: it was measured with another version, so nothing is expected of this one."""
        if self.measured not in version:
            raise NotApplicable(
                f"measured with {self.measured}x, and this is {version}: "
                f"`hil sweep push --client {self.client} --action {self.action}` records what it does"
            )


def load_push_cells(path: Path) -> list[PushCell]:
    """Read a table of pushes.

    The file has ``source`` (where it was measured), ``clients`` (name -> what its version had in it) and
    ``cells`` (action -> point -> one :data:`Class` per client, or ``-`` for what was not measured).

    :raises ConfigurationError: the file does not say that.
    """
    try:
        data = load_plain(path.read_text(encoding="utf-8"))
        if not str(data["source"]).strip():
            raise ValueError("the source is empty")
        return list(_cells(data))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"Cannot read the table of pushes {path}: {error}") from error
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{path} is not a table of pushes: {error.message}", hint=error.hint
        ) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(
            f"{path} is not a table of pushes: {error}",
            hint="It needs source, clients and cells, with one word per client for every point.",
        ) from error


def _cells(data: dict[str, Any]) -> Iterator[PushCell]:
    clients: dict[str, str] = data["clients"]
    if unknown := clients.keys() - PUSH_CLIENTS.keys():
        raise ValueError(f"there is no client {', '.join(sorted(unknown))}")
    for action, points in data["cells"].items():
        registry_action(action)
        for point, words in points.items():
            FaultPoint.parse(point)
            row = words.split()
            if len(row) != len(clients):
                raise ValueError(f"the row {point!r} has {len(row)} words for {len(clients)} clients")
            for (client, measured), word in zip(clients.items(), row, strict=True):
                if word != "-":
                    if word not in _EXPECTS:
                        raise ValueError(f"{word!r} is none of {', '.join(_EXPECTS)} and -")
                    yield PushCell(client, action, point, word, measured)
