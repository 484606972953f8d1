"""Reads an inventory file; an error names file, line and key, what is allowed and the nearest spelling."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.errors import ConfigurationError
from harness.inventory.model import Inventory
from harness.inventory.placed import Form, Keys, Problem, content_of, placed, problems_of, read_placed

#: Names the file where it is not ``inventory.yaml`` of the current directory or one above it.
PATH_VARIABLE = "HIL_INVENTORY"

_FORM = Form(
    "inventory",
    "version, default_lab and labs",
    "`hil inventory schema` prints every key and what it may hold.",
    f"Name another file with --inventory or {PATH_VARIABLE}.",
)
_SECRET_KEYS = frozenset({"password", "passwd", "pass", "pwd", "secret", "token", "api_key"})
#: What holds references, and never the secret itself.
_REFERENCES = ("credentials", "passphrase")
_SECRET_HINT = (
    "Say where the secret is found: credentials: {env: LAB_PASSWORD}, {file: ~/.secrets/lab} (mode 0600), "
    "{key_file: ~/.ssh/id_ed25519} or {agent: true}."
)


def named_inventory() -> Path | None:
    """Return the inventory that ``$HIL_INVENTORY`` names; None where it names none."""
    named = os.environ.get(PATH_VARIABLE)
    return Path(named) if named else None


def find_inventory() -> Path:
    """Return the inventory that holds here: ``$HIL_INVENTORY``, else the nearest ``inventory.yaml`` upwards.

    :raises ConfigurationError: there is none.
    """
    named = named_inventory()
    if named:
        return named
    here = Path.cwd()
    if Path("inventory.yaml").is_file():
        return Path("inventory.yaml")  # as the reader would write it, for short messages
    for directory in here.parents:
        if (directory / "inventory.yaml").is_file():
            return directory / "inventory.yaml"
    raise ConfigurationError(
        f"There is no inventory.yaml in {here} or above it.",
        hint=f"Run in the project's directory, or name a file with --inventory or {PATH_VARIABLE}.",
    )


def load_inventory(path: Path | str | None = None) -> Inventory:
    """Read and check the inventory at ``path``, by default the one :func:`find_inventory` finds.

    :raises ConfigurationError: the file cannot be read, is not YAML, or breaks the schema; all that is
        wrong with it is listed, each with file, line and key.
    """
    file = find_inventory() if path is None else Path(path)
    return _checked(content_of(file, _FORM), file, file.resolve().parent)


# Before a run starts, the command line checks what the run then loads: the same bytes are the same inventory.
@lru_cache(maxsize=2)
def _checked(content: bytes, file: Path, base: Path) -> Inventory:
    tree = placed(content, file, _FORM)
    problems = _secrets_in(tree)
    plain = _plain(tree, (), problems)
    inventory: Inventory | None = None
    if not problems:
        try:
            inventory = Inventory.model_validate(plain | {"path": file}, context={"base": base})
        except ValidationError as error:
            problems = problems_of(error, Inventory)
    if inventory is None:
        raise _FORM.rejected(file, tree, problems)
    return inventory


def check_profiles(inventory: Inventory, check: Callable[[Mapping[str, Any]], object]) -> None:
    """Hold every value of a ``profile`` to ``check``, which the emulator offers, and place its errors.

    :param check: raises ConfigurationError for a name or a value that it does not know.
    :raises ConfigurationError: what ``check`` rejects, each with file, line and key.
    """
    problems: list[Problem] = []
    for lab in inventory.labs.values():
        for host, card in lab.cards():
            keys: Keys = ("labs", lab.name, "hosts", host.name, "cards", card.name, "emulated", "profile")
            for name, value in (card.emulated.profile if card.emulated else {}).items():
                try:
                    check({name: value})
                except ConfigurationError as error:
                    problems.append(((*keys, name), " ".join(filter(None, (error.message, error.hint)))))
    if problems:
        raise _FORM.rejected(inventory.path, read_placed(inventory.path, _FORM), problems)


def _secrets_in(node: Any, keys: Keys = ()) -> list[Problem]:
    """Find literal secrets; what is found is never repeated in the message."""
    if isinstance(node, Mapping):
        found: list[Problem] = []
        for key, value in node.items():
            here = (*keys, key)
            literal = str(key).lower() in _REFERENCES and isinstance(value, str | int | float)
            if literal or str(key).lower() in _SECRET_KEYS:
                found.append((here, f"a literal secret may not stand in the inventory. {_SECRET_HINT}"))
            else:
                found.extend(_secrets_in(value, here))
        return found
    if isinstance(node, list):
        return [item for index, value in enumerate(node) for item in _secrets_in(value, (*keys, index))]
    return []


def _plain(node: Any, keys: Keys, problems: list[Problem]) -> Any:
    """Return plain data. ``emulated`` alone or true means "with defaults"; other keys need a value."""
    if isinstance(node, Mapping):
        plain: dict[Any, Any] = {}
        for key, value in node.items():
            here = (*keys, key)
            if key == "emulated" and value in (None, True):
                plain[key] = {}
            elif value is None:
                problems.append((here, "has no value; give one or leave the key out"))
            else:
                plain[key] = _plain(value, here, problems)
        return plain
    if isinstance(node, list):
        return [_plain(value, (*keys, index), problems) for index, value in enumerate(node)]
    if isinstance(node, str) and not node.isprintable():
        problems.append((keys, "holds a character that cannot be printed"))
    return node
