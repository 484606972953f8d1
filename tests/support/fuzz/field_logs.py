"""What engineers paste into bug trackers: read, explained, and drafted as scenarios."""

from __future__ import annotations

import json
from collections.abc import Sequence

from support import field_reports as reports
from support.fuzz.documents import as_file
from support.fuzz.engine import Target
from support.fuzz.mutate import NUMBERS, SNIPPETS, TextMutator
from support.fuzz.plans import IMAGES

from harness.controlplane.folded import bare_columns, parse_bare, parse_barred
from harness.errors import ConfigurationError, TableError
from harness.scenarios.field_logs.drafting import draft_scenario
from harness.scenarios.field_logs.explaining import explained, explained_text
from harness.scenarios.field_logs.lines import read_lines
from harness.scenarios.field_logs.reading import read_field_logs
from harness.scenarios.files import load_scenario

_WORDS = (
    *("subcloud4: ", "$ ", "in-sync", "out-of-sync", "dcmanager fw-update-strategy apply\n", "\\\n", "+---+"),
    *(
        " | ",
        "\t",
        "uuid bitstream_type",
        "[INFO    ] ",
        "Secure update OK\n",
        "time=",
        "msg=",
        "{u'a': u'b'}",
    ),
    *(
        "2022-09-21 18:56:25.1 ",
        "Sep 21 18:56:25 ",
        "9999-12-31 23:59:59 ",
        "+99:99",
        "\x1b[31m",
        "\0",
        "\u2028",
    ),
    *(*NUMBERS, *SNIPPETS),
)


def _seeds() -> Sequence[bytes]:
    return [text.encode() for text in (*reports.EVERY.values(), reports.CARD_FALSE, reports.REGISTRY)]


def check_field_log(data: bytes) -> str:
    """Whatever is pasted is read; claims are data and stand in the file; a draft passes the check."""
    path = as_file(data, "pasted.txt")
    notes: list[str] = []
    last = max((line.number for line in read_lines(str(path), notes.append)), default=0)
    log = read_field_logs([str(path)])
    assert all(1 <= event.place.line <= last for event in log.events), "it cites a line that is not there"
    document = explained(log)
    json.dumps(document)
    text = explained_text(log)
    assert all(char.isprintable() or char in "\n\t" for char in text), "what it tells could steer a terminal"
    try:
        draft = draft_scenario(log)
    except ConfigurationError as error:
        assert "to draft a scenario of" in error.message, error.message
        return f"{min(len(document['claims']), 9)} claims, no draft"
    scenario = load_scenario(as_file(draft.encode(), "drafted.scenario.yaml"), IMAGES)
    kinds = sorted({call.step.fixture for call in scenario.calls})
    found = len(document["contradictions"])
    return f"{min(len(document['claims']), 9)} claims {min(found, 3)} {' '.join(kinds)}"


def check_folded(data: bytes) -> str:
    """A table without its form is refused, or each row has the cells of all columns."""
    lines = data.decode("utf-8", "replace").splitlines()
    found = []
    for read in (parse_barred, parse_bare):
        try:
            table = read(lines)
        except TableError as error:
            assert len(str(error)) < 2000, "the refusal repeats what was read"
            continue
        assert all(tuple(row) == table.columns for row in table.rows)
        found.append(f"{len(table.columns)} {min(len(table.rows), 3)}")
    return " ".join(found) or f"refused {bare_columns(lines[0] if lines else '') is not None}"


def _tables() -> Sequence[bytes]:
    bars = "| hostname | PCI device name | label key | label value |\n| a | b | c | d |"
    return (bars.encode(), bars.replace("| ", "").encode(), f"+----+\n{bars}\n+----+".encode())


def _hard() -> Sequence[bytes]:
    """Long lines, long tables, and prose that could be read in very many ways."""
    return (
        b"subcloud1 & " * 5000 + b"in-sync",
        b"| a | b | c |\n" * 5000,
        b"uuid bitstream_t\n" + b"\n" * 10_000,
        b"subcloud1 round finished in-sync\n" * 2000,
        b"system " + b"--a b " * 10_000 + b"host-lock x",
        (b"2022-09-21 18:56:25 Image a:b download succeeded in 9 seconds " + b"x" * 200 + b"\n") * 1000,
        b"\x1f\x8b\x08" + b"\0" * 100,
    )


TARGETS = (
    Target("field-log", _seeds, check_field_log, lambda: TextMutator(_WORDS), share=0.5, short=25,
           cpu_seconds=6.0, hard=_hard),
    Target("folded-table", _tables, check_folded, lambda: TextMutator(("|", "\t", "----", *NUMBERS)),
           short=100),
)  # fmt: skip
