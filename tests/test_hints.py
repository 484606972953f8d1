"""Hints name what there is: every `hil` command in one is a command, every key of the inventory a key."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperGroup

from harness.cli import SUB_COMMANDS, load_command
from harness.inventory.model import Inventory

PROJECT = Path(__file__).resolve().parents[1]
#: Functions that make a check, and where its hint stands among their arguments (harness/health/checks.py).
CHECKS = {"ok": 2, "warn": 2, "bad": 2}
#: What stands in backticks beside a key of the inventory, and is a program or a key of another file.
OTHERS = {"keyctl"}


def hints() -> Iterator[tuple[str, str]]:
    """Yield where each hint stands, and its text with {} for what is put in."""
    for path in sorted((PROJECT / "harness").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                for hint in hints_of(node):
                    yield f"{path.relative_to(PROJECT)}:{hint.lineno}", text_of(hint)


def hints_of(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the arguments of a call that are hints."""
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "hint")
    at = CHECKS.get(getattr(call.func, "id", ""))
    if at is not None:
        yield from call.args[at : at + 1]


def text_of(node: ast.AST) -> str:
    """Return all literal text of an expression, in order."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.FormattedValue):
        return "{}"
    return "".join(text_of(child) for child in ast.iter_child_nodes(node))


HINTS = list(hints())


def commands() -> dict[str, set[str] | None]:
    """Return the command tree: a command's name -> its subcommands; None where it has none."""
    loaded = {name: load_command(name) for name in SUB_COMMANDS}
    return {
        name: set(command.commands) if isinstance(command, TyperGroup) else None
        for name, command in loaded.items()
    }


def keys() -> set[str]:
    """Return every key of the inventory's schema."""
    schema = Inventory.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return {name for part in parts for name in part.get("properties", {})}


def test_every_command_that_a_hint_names_is_one() -> None:
    known = commands()
    found = [
        (where, first, second)
        for where, hint in HINTS
        for first, second in re.findall(r"(?<!the )\bhil ([a-z][a-z-]*)(?: ([a-z][a-z-]*|\.\.\.))?", hint)
    ]
    assert len(found) > 50, "hints name commands"
    wrong = [
        f"{where}: hil {first} {second}"
        for where, first, second in found
        if first not in known or second not in {"...", *(known[first] or {second})}
    ]
    assert wrong == []


def test_every_key_of_the_inventory_that_a_hint_names_is_one() -> None:
    known = keys()
    assert {"power", "redfish", "system", "irreversible"} <= known
    found = [
        (where, word)
        for where, hint in HINTS
        if "inventory" in hint or "power:" in hint
        for quoted in re.findall(r"`([^`]*)`", hint)
        if not quoted.startswith("hil ")
        for word in re.findall(r"\b[a-z_]+(?=:)|^[a-z_]+$", quoted)
    ]
    assert len(found) > 15, "hints name keys"
    assert [f"{where}: {word}" for where, word in found if word not in known | OTHERS] == []


@pytest.mark.parametrize("word", ["capability", "capabilities"])
def test_no_hint_speaks_of_a_key_that_only_scenarios_know(word: str) -> None:
    assert [where for where, hint in HINTS if word in hint and "inventory" in hint] == []
