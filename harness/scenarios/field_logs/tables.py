"""Reads the tables of `system`, `fm` and `dcmanager` out of a paste, whole, wrapped or mangled, as claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.controlplane.cloud_protocol import CloudSaid, Step, Strategy, Subcloud
from harness.controlplane.columns import (
    ALARM_COLUMNS,
    DEVICE_COLUMNS,
    HOST_COLUMNS,
    LABEL_COLUMNS,
    STATE_COLUMNS,
    STEP_COLUMNS,
)
from harness.controlplane.folded import bare_columns, parse_bare, parse_barred
from harness.controlplane.mangled import begins_images, goes_on, parse_mangled_images
from harness.controlplane.protocol import (
    NOT_SHOWN,
    Alarm,
    DeviceImage,
    DeviceImageState,
    DeviceLabel,
    HostState,
    PciDevice,
    Said,
    statement,
)
from harness.controlplane.reading import from_table
from harness.controlplane.tables import Row, Table, parse_tables
from harness.controlplane.told import subject_of
from harness.errors import ControlPlaneError, TableError
from harness.judgement.records import Claim, Evidence
from harness.judgement.values import Unknown
from harness.record.redaction import redact
from harness.scenarios.field_logs.events import CENTRAL, Context, Event, Place, Told
from harness.scenarios.field_logs.lines import Line

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

#: Lines that one table may have.
_LONGEST: Final = 4000
_EVIDENCE: Final = 600
#: Lines of an image list that tell how it goes on: they have its header and its first row.
_FIRST: Final = 8
#: Lines that one row may have, wrapped.
_OF_A_ROW: Final = 12
_STATUS: Final = "_sync_status"
#: Columns that a list of something has at least -> what it is a list of.
_LISTS: Final[tuple[tuple[tuple[str, ...], type[Said | CloudSaid]], ...]] = (
    (("uuid", "bitstream_type"), DeviceImage),
    (STATE_COLUMNS[:4], DeviceImageState),
    (LABEL_COLUMNS[2:], DeviceLabel),
    (DEVICE_COLUMNS[:2], PciDevice),
    (HOST_COLUMNS[1:4], HostState),
    (ALARM_COLUMNS[1:4], Alarm),
    (("name", "management", "availability"), Subcloud),
    (STEP_COLUMNS[:3], Step),
)
#: The same of the properties of one.
_PROPERTIES: Final[tuple[tuple[tuple[str, ...], type[Said | CloudSaid]], ...]] = (
    (("uuid", "bitstream_type"), DeviceImage),
    (("address", "class id"), PciDevice),
    (("hostname", "administrative"), HostState),
    (("name", "management", "availability"), Subcloud),
    (("strategy type", "state"), Strategy),
    (("cloud", "state"), Step),
)
_OF_CLOUDS: Final = (Subcloud, Strategy, Step)


@dataclass
class TableReader:
    """Gathers the lines of a table, and yields what it says of each thing in it."""

    hints: tuple[str, ...] = ("+--", "|", "uuid", "hostname", "label", "management", "stage")
    _lines: list[Line] = field(default_factory=list)
    _form: str = ""

    @property
    def busy(self) -> bool:
        """Whether a table may go on."""
        return bool(self._lines)

    def take(self, line: Line, context: Context) -> Iterator[Event]:
        """Yield what a table says that ends before this line."""
        text = _unquoted(line.text)
        if self._lines:
            if self._goes_on(text) and len(self._lines) < _LONGEST:
                self._lines.append(Line(line.file, line.number, text))
                context.heard = line.number
                return
            yield from self.end(context)
        self._form = _form_of(text)
        if self._form:
            self._lines.append(Line(line.file, line.number, text))
            context.heard = line.number

    def end(self, context: Context) -> Iterator[Event]:
        """Yield what the table says that was begun."""
        lines, self._lines = self._lines, []
        if lines:
            for table in _tables(self._form, [line.text for line in lines]):
                yield from _claims(table, lines, context)

    def _goes_on(self, text: str) -> bool:
        match self._form:
            case "barred":
                return text[:1] in ("+", "|")
            case "images":
                return goes_on([line.text for line in self._lines[:_FIRST]], text)
            case _:
                return bool(text.strip()) or len(self._lines) < 3


def _unquoted(text: str) -> str:
    """Return a line without what marks it as quoted, or sets it apart."""
    return text.lstrip("> \t") if text.lstrip("> \t")[:1] in ("+", "|") else text


def _form_of(text: str) -> str:
    if text.startswith("+--") or (text.startswith("|") and text.count("|") > 2):
        return "barred"
    if begins_images(text):
        return "images"
    return "bare" if bare_columns(text) is not None else ""


def _tables(form: str, lines: Sequence[str]) -> list[Table]:
    """Return the tables in some lines; none where they are past reading."""
    text = "\n".join(lines)
    ways: dict[str, tuple[Callable[[], list[Table]], ...]] = {
        "barred": (
            lambda: parse_tables(text),
            lambda: [parse_barred(lines)],
            lambda: parse_mangled_images(text),
        ),
        "images": (lambda: parse_mangled_images(text),),
        "bare": (lambda: [parse_bare(lines)],),
    }
    for read in ways[form]:
        try:
            if tables := read():
                return tables
        except TableError:
            continue
    return []


def _claims(table: Table, lines: Sequence[Line], context: Context) -> Iterator[Event]:
    if table.is_properties:
        try:
            rows: Sequence[Row] = (table.properties(),)
        except TableError:
            return
        kind = next((kind for names, kind in _PROPERTIES if set(names) <= rows[0].keys()), None)
    else:
        rows = table.rows
        kind = next((kind for names, kind in _LISTS if set(names) <= set(table.columns)), None)
    if kind is None:
        return
    at = 0
    for row in rows:
        at = min(_line_of(row, lines, at), len(lines) - 1)
        if (said := _said(kind, row)) is not None:
            yield _told(said, Place(lines[at].file, lines[at].number), lines[at].text, context)
        at += 1


def _said(kind: type[Said | CloudSaid], row: Row) -> Said | CloudSaid | None:
    more: dict[str, Any] = {}
    if kind is Subcloud:
        endpoints = {
            name.removesuffix(_STATUS): str(value)
            for name, value in row.items()
            if name.endswith(_STATUS) and not isinstance(value, Unknown)
        }
        more = {"endpoint_sync": endpoints} if endpoints else {}
        row = {name.replace(" ", "_"): value for name, value in row.items()}
    if kind is DeviceLabel:
        row = {name: value for name, value in row.items() if value != "None"}
    try:
        return from_table(kind, row, **more)
    except ControlPlaneError:  # a row of <none>, or one that names nothing
        return None


def _told(said: Said | CloudSaid, place: Place, text: str, context: Context) -> Told:
    of_cloud = isinstance(said, _OF_CLOUDS)
    system = CENTRAL if of_cloud else context.system
    return Told(
        place=place,
        claim=Claim(
            reporter="dcmanager-cli" if of_cloud else "system",
            subject=subject_of(system or "system", said),
            statement=shown_fields(said),
            evidence=Evidence(redact(" ".join(text.split()))[:_EVIDENCE], context.command),
        ),
        system=system,
    )


def shown_fields(said: DataclassInstance) -> dict[str, Any]:
    """Return what was said as the statement of a claim: the fields that are shown."""
    return {
        name: value
        for name, value in statement(said).items()
        if not isinstance(value, Unknown) or value.reason != NOT_SHOWN.reason
    }


def _line_of(row: Row, lines: Sequence[Line], start: int) -> int:
    """Return which line a row begins in: of those from ``start`` on the first with most of its cells."""
    cells = {value[:12] for value in row.values() if isinstance(value, str) and value}
    near = range(start, min(len(lines), start + _OF_A_ROW))
    return max(near, key=lambda at: (sum(cell in lines[at].text for cell in cells), -at), default=start)
