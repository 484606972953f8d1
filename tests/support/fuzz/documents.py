"""Files and requests: histories, inventories, tables, recordings, a card's state, the control socket."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from support.fuzz.engine import Target
from support.fuzz.mutate import NUMBERS, JsonMutator, TextMutator
from support.fuzz.seeds import ADDRESS, ROOT, images, new_host, root_hash_of_a, run_on, truth_texts

from harness.cards.truth import Probe
from harness.emulator import control as control_module
from harness.emulator.card import CardState, CardStore
from harness.emulator.card.phases import HoldPoint
from harness.emulator.control import Control
from harness.emulator.host import CONDITIONS
from harness.errors import ConfigurationError, InfrastructureError
from harness.images.facts import image_facts
from harness.images.payload import load_payload_table
from harness.images.recipes import load_recipes
from harness.inventory.load import load_inventory
from harness.judgement import records as r
from harness.judgement.judge import judge
from harness.record.history import History, read_history
from harness.recordings.files import read_recording
from harness.report.results import results_json
from harness.report.summary import render
from harness.scenarios.table import load_cells


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="hil-fuzz-")


def as_file(data: bytes, name: str) -> Path:
    """Return a file with ``data``: the same one each time, for one reader at a time."""
    path = Path(_folder().name) / f"{os.getpid()}-{name}"
    path.write_bytes(data)
    return path


# -- histories ------------------------------------------------------------------------------------


@cache
def _histories() -> Sequence[bytes]:
    found = []
    for image in (images()[-1], images()[6], b"raw"):
        path = Path(_folder().name) / f"seed-{len(found)}.jsonl"
        with History(path) as history:
            for record in _run_of(image):
                history.add(record)
        found.append(path.read_bytes())
    return found


def _run_of(image: bytes) -> Sequence[r.Record]:
    card = r.Subject("card", "subcloud1/card0", "subcloud1", ADDRESS, "64:4c:36:00:00:00")
    out, _, err = truth_texts()[0].partition(b"\0")
    truth = Probe(ADDRESS).parse(out.decode(), err.decode())
    facts = image_facts(image, "fuzzed").to_json()
    evidence = r.Evidence("Secure update OK", "fpgasupdate x", 0)
    states = {"sr_cancelled": [0, 1], "flash_count": 12, "sr_root": root_hash_of_a()}

    def seen(moment: str, intent: int) -> r.Observation:
        return r.Observation(
            probe="sysfs",
            subject=card,
            moment=moment,
            values=truth.values(),
            sources=dict(truth.sources),
            intent=intent,
        )

    return (
        r.RunStarted(run="one", lab="emulated", versions={"harness": "0"}, options={"irreversible": []}),
        r.ScenarioStarted(
            scenario="t.py::flash", subject=card, expects={"outcome": "FAILED", "verdicts": {"rsu": "STALE"}}
        ),
        r.Intent(
            operation="flash",
            subject=card,
            parameters={"image": facts, "name": "A"},
            promise=r.Promise("unchanged", ("0x11", "0x12"), "UG 683519"),
        ),
        seen("before", 3),
        r.Claim(
            reporter="fpgasupdate",
            subject=card,
            statement={"result": "done", "phase": "programming", "error": ""},
            evidence=evidence,
            intent=3,
        ),
        r.Completion(intent=3, how="raised", error={"kind": "device", "message": "no"}),
        seen("after", 3),
        r.Claim(
            reporter="kernel-log",
            subject=card,
            statement={"auth_code": "0x11"},
            evidence=r.Evidence("RSU auth result: 0x11", "dmesg"),
            intent=3,
        ),
        r.Fault(point="programming", action="power-cut", subject=card, state="fired", intent=3),
        r.Intent(operation="reset", subject=card, promise=r.Promise("returns")),
        r.Completion(intent=10, how="returned"),
        seen("after-reset", 10),
        r.Claim(reporter="fpgainfo", subject=card, statement=states, evidence=evidence),
        r.ScenarioEnded(scenario="t.py::flash"),
        r.RunEnded(),
    )


def check_history(data: bytes) -> str:
    """A history is read or refused with the line; what is read is judged, alike each time, and is data."""
    path = as_file(data, "history.jsonl")
    torn: list[int] = []
    try:
        records = list(read_history(path, torn.append))
    except ConfigurationError as error:
        assert str(path) in error.message
        return "refused"
    assert [record.seq for record in records] or not records
    for record in records:
        assert r.from_json(json.loads(json.dumps(r.to_json(record), allow_nan=False))) == record
    try:
        judgement = judge(records)
    except ConfigurationError:
        return "states what cannot be judged"
    plain = json.dumps(results_json(judgement), allow_nan=False)
    assert plain == json.dumps(results_json(judge(records)), allow_nan=False)
    render(judgement, path.parent)
    verdicts = " ".join(sorted(kind.value for kind in judgement.count_verdicts()))
    return f"{len(judgement.scenarios)} {bool(torn)} {sorted(judgement.exit_codes)} {verdicts}"


_RECORD_WORDS = (
    *("seq", "time", "kind", "intent", "promise", "values", "sources", "statement", "evidence", "unknown"),
    *(
        "before",
        "after",
        "after-reset",
        "done",
        "failed",
        "not-sent",
        "interrupted",
        "MATCH",
        "LOST",
        "BREACH",
    ),
    *("flash", "reset", "power-cycle", "root-key", "key-cancellation", "bmc-image", "pr-image", "unparsed"),
    *("card", "record", "all ones", "not exposed", "fpgasupdate", "rsu", "fpgainfo", "kernel-log", "0x15"),
)


def _record_mutator() -> JsonMutator:
    return JsonMutator(_RECORD_WORDS)


# -- inventories, recipes, tables -----------------------------------------------------------------

_YAML_WORDS = (
    *("&a ", "*a", "<<: *a", "!!int ", "!!binary ", "!!timestamp ", "!!python/object:os.system ", "? ", "- "),
    *(
        "{",
        "}",
        "[",
        "]",
        "|\n",
        ">\n",
        "---\n",
        "...\n",
        "%YAML 9.9\n",
        "# ",
        "null",
        "~",
        "true",
        "on",
        "0o17",
    ),
    *(
        "1:60",
        "2001-99-99",
        "2001-01-01 25:00:00",
        ".inf",
        ".nan",
        "0x",
        "1e999",
        "=",
        "@x",
        "`x",
        "\t",
        "? [a]\n",
    ),
    *(
        "emulated: ",
        "ssh: ",
        "local: ",
        "cards: ",
        "credentials: ",
        "irreversible: ",
        "power: ",
        "password: x",
    ),
    *("labs: ", "default_lab: ", "version: ", "path: x", "name: x", *NUMBERS),
)


def _yaml() -> TextMutator:
    return TextMutator(_YAML_WORDS, blow_up=1 << 14)


@cache
def _inventories() -> Sequence[bytes]:
    full = (ROOT / "inventory.yaml").read_bytes()
    small = b"""version: 1
default_lab: small
labs:
  small:
    hosts:
      left:
        emulated: {hostname: controller-0}
        cards:
          card0:
            address: 0000:b2:00.0
            identity: 64:4c:36:77:01:00
            irreversible: [root-key, key-cancellation]
            emulated:
              {sr_root: "%s", sr_cancelled: [3], flash_count: 12, profile: {prepare_seconds: 2}}
      reached:
        ssh: {address: lab-host.example, user: sysadmin, credentials: {env: LAB_TEST_PASSWORD}}
        power: {command: {off: "true", on: "false"}}
      here: {local: true}
""" % (b"ab" * 32)
    return (full, small, small)


def check_inventory(data: bytes) -> str:
    """An inventory is taken or refused with file and place; it permits nothing that its text does not say."""
    path = as_file(data, "inventory.yaml")
    try:
        inventory = load_inventory(path)
    except ConfigurationError as error:
        assert path.name in error.message
        assert len(error.message) < 200_000
        return "refused"
    for lab in inventory.labs.values():
        for host, card in lab.cards():
            assert set(card.irreversible) <= {"root-key", "key-cancellation"}
            assert all(word.encode() in data for word in card.irreversible)
            assert host.emulated or host.ssh or host.real
    return f"{len(inventory.labs)} labs"


def _hard_yaml() -> Sequence[bytes]:
    """A few hundred bytes that stand for more than any memory holds, and nests without an end."""
    laughs = b"a0: &a0 [x, x]\n" + b"".join(
        b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 40)
    )
    return (
        laughs,
        b"version: 1\nlabs: &a\n  x: *a\n",
        b"[" * 20_000,
        b"x: " + b"{a: " * 3000,
        b"- " * 20_000,
    )


def _refusing(load: Callable[[bytes], Any]) -> Callable[[bytes], str]:
    """Return the check of a reader that gives its data or refuses with a ConfigurationError."""

    def check(data: bytes) -> str:
        try:
            return f"{min(len(load(data)), 9)}"
        except ConfigurationError:
            return "refused"

    check.__doc__ = load.__doc__
    return check


def _recipes(data: bytes) -> Any:
    return load_recipes(data.decode("utf-8", "replace"))


def _payloads(data: bytes) -> Any:
    table = load_payload_table(data.decode("utf-8", "replace"))
    assert all(0 <= found.bitstream_id < 1 << 64 for found in table.sr.values())
    assert all(0 <= found.bmc_version < 1 << 32 for found in table.bmc.values())
    return {**table.sr, **table.bmc}


def _cells(data: bytes) -> Any:
    return load_cells(as_file(data, "table.yaml"))


def _read(*names: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [(ROOT / name).read_bytes()[:6000].rpartition(b"\n")[0] + b"\n" for name in names]


# -- recordings and the state of a card -----------------------------------------------------------


def _recordings() -> Sequence[bytes]:
    return [b"{}"]  # those of cards are in the corpus


def check_recording(data: bytes) -> str:
    """A recording is taken whole or refused."""
    path = as_file(data, "recording.json")
    try:
        recording = read_recording(path)
    except ConfigurationError:
        return "refused"
    json.dumps(recording.to_json())
    return "taken"


@cache
def _states() -> Sequence[bytes]:
    folder = Path(_folder().name) / "card"
    found = []
    for state in (
        CardState(address="0000:5e:00.0", retimer="101c.1065", pr_cancelled=frozenset(range(128))),
        CardState(sr_root="ab" * 48, bmc_root=None, flash_count=32768),
        CardState(sr_root=root_hash_of_a(), sr_cancelled=frozenset({3}), user_page=b"page", flash_count=7),
    ):
        CardStore(folder).save(state)
        found.append((folder / "card.json").read_bytes())
    return found


def check_card_state(data: bytes) -> str:
    """What is kept of a card loads, or is told to be damaged; what loads works as a card."""
    _states()
    folder = Path(_folder().name) / "card"
    (folder / "card.json").write_bytes(data)
    try:
        state = CardStore(folder).load()
    except InfrastructureError as error:
        assert str(folder) in error.message
        return "refused"
    assert state is not None
    _works(state)
    return "loaded"


def _works(state: CardState) -> None:
    """A card in ``state`` shows what a card shows and keeps it as it is."""
    assert CardState.from_json(json.loads(json.dumps(state.to_json()))) == state
    host = new_host(1, state)
    argv = " ".join(f"'{word}'" if word == "" else word for word in Probe(state.address or ADDRESS).argv)
    try:
        code, out, _ = run_on(host, argv)
        assert code in (0, 1, 2)
        assert b"/uevent:" in out or b"No such file" in run_on(host, argv)[2]
    finally:
        host.clock.close()


# -- the control socket ---------------------------------------------------------------------------

_CARD = "subcloud1/card0"


def _requests() -> Sequence[bytes]:
    phases = ("preparing", "copying", "keys")
    asked: list[dict[str, Any]] = [
        {"op": "fit", "card": _CARD, "state": CardState(sr_root=root_hash_of_a()).to_json()},
        {"op": "fit", "card": _CARD, "state": {"flash_count": 3}, "profile": {"copy_rate": 1.5}},
        {"op": "fit", "card": _CARD, "state": {"address": "0000:5e:00.0"}},
        *({"op": "power", "host": "subcloud1", "how": how} for how in ("off", "on", "cycle", "reboot")),
        *({"op": "hold", "card": _CARD, "phase": phase} for phase in phases),
        {"op": "release", "card": _CARD},
        {"op": "held", "card": _CARD},
        {"op": "wait-held", "card": _CARD, "phase": "copying", "seconds": 0},
        {"op": "condition", "subject": _CARD, "name": "all-ones", "on": True},
        {"op": "condition", "subject": "subcloud1", "name": "no-image-load", "on": True},
        {"op": "moves-to", "card": _CARD, "address": "0000:5e:00.0"},
        {"op": "moves-to", "card": _CARD, "address": None},
        {"op": "lab-time"},
        {"op": "oracle", "card": _CARD},
        {"op": "unrecorded"},
    ]
    return [json.dumps(request).encode() for request in asked]


def check_control(data: bytes) -> str:
    """Whatever a lab is asked, it answers with data; and it still is a lab with a card afterwards."""
    host = new_host()
    control = Control({host.name: host}, host.clock, lambda: None)
    words = []
    try:
        for line in data.split(b"\n")[:20]:
            with patch.object(control_module, "_LONGEST_WAIT", 0.01):
                answer = json.loads(json.dumps(control.answer(line)))
            assert ("error" in answer) != ("result" in answer), answer
            words.append(answer.get("kind", "done"))
        for line in ({"op": "power", "host": host.name, "how": "on"}, {"op": "release", "card": _CARD}):
            answer = control.answer(json.dumps(line))
            assert "result" in answer, answer
        for name in (*CONDITIONS, "missing-rsu", "missing-lspci"):
            host.condition(name, False)
        card = host.card("card0")
        _works(card.state)
        fitted = control.answer(json.dumps({"op": "fit", "card": _CARD, "state": {}, "profile": {}}))
        assert fitted == {"result": None}
        assert card.bitstream_id
        assert run_on(host, f"rsu bmcimg {ADDRESS}")[0] in (0, 69), "the lab's time stands still"
    finally:
        host.clock.close()
    return " ".join(words)


def _request_mutator() -> JsonMutator:
    words = ("op", "card", "host", "subject", "state", "profile", "address", "how", "phase", "seconds", "on")
    values = (_CARD, "subcloud1", "subcloud1/", "/", "0000:zz:00.0", "a:b", *HoldPoint.__args__)
    return JsonMutator((*words, *CardState.__slots__), values)


def clean_up() -> None:
    """Remove the folder of :func:`as_file`; the next use makes another."""
    with suppress(OSError):
        _folder().cleanup()
    for cached in (_folder, _histories, _states):
        cached.cache_clear()


TARGETS = (
    Target("history", _histories, check_history, _record_mutator, share=6, short=100),
    Target(
        "inventory",
        _inventories,
        check_inventory,
        _yaml,
        share=1,
        short=40,
        hard=_hard_yaml,
        cpu_seconds=20.0,
    ),
    Target(
        "recipes",
        lambda: [
            (ROOT / "fixtures/images.yaml").read_bytes()
        ],  # whole: later recipes are parts of earlier ones
        _refusing(_recipes),
        _yaml,
        share=1,
        short=30,
        hard=_hard_yaml,
        cpu_seconds=20.0,
    ),
    Target(
        "payload-table",
        _read("fixtures/vectors/payloads.yaml"),
        _refusing(_payloads),
        _yaml,
        share=1,
        short=50,
        hard=_hard_yaml,
        cpu_seconds=20.0,
    ),
    Target(
        "flash-table",
        _read("testplans/regression/flash/matrix.yaml", "testplans/regression/flash/checks.yaml"),
        _refusing(_cells),
        _yaml,
        share=1,
        short=40,
        hard=_hard_yaml,
        cpu_seconds=20.0,
    ),
    Target("recording", _recordings, check_recording, _record_mutator, share=2, short=40),
    Target("card-state", _states, check_card_state, _request_mutator, share=1, short=300),
    Target("control", _requests, check_control, _request_mutator, share=0.5, short=25),
)
