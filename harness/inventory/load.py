"""Reads an inventory file; an error names file, line and key, what is allowed and the nearest spelling."""

from __future__ import annotations

import os
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError

from harness.errors import ConfigurationError
from harness.inventory.entries import EntryError, nearest
from harness.inventory.model import Inventory
from harness.yaml_text import check_depth

Keys = tuple[str | int, ...]

#: Names the file where it is not ``inventory.yaml`` of the current directory or one above it.
PATH_VARIABLE = "HIL_INVENTORY"

#: An inventory of 500 cards has about 10,000 values and 100,000 bytes.
_MOST_VALUES = 200_000
_LARGEST_FILE = 1 << 23

_ANOTHER_FILE = f"Name another file with --inventory or {PATH_VARIABLE}."
_SECRET_KEYS = frozenset({"password", "passwd", "pass", "passphrase", "pwd", "secret", "token", "api_key"})
_SECRET_HINT = (
    "Say where the secret is found: credentials: {env: LAB_PASSWORD}, {file: ~/.secrets/lab} (mode 0600), "
    "{key_file: ~/.ssh/id_ed25519} or {agent: true}."
)


def find_inventory() -> Path:
    """Return the inventory that holds here: ``$HIL_INVENTORY``, else the nearest ``inventory.yaml`` upwards.

    :raises ConfigurationError: there is none.
    """
    named = os.environ.get(PATH_VARIABLE)
    if named:
        return Path(named)
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
    tree = _read(file)
    problems = _secrets_in(tree)
    plain = _plain(tree, (), problems)
    inventory: Inventory | None = None
    if not problems:
        try:
            inventory = Inventory.model_validate(
                plain | {"path": file}, context={"base": file.resolve().parent}
            )
        except ValidationError as error:
            problems.extend((_keys_of(details), _explain(details)) for details in error.errors())
    if inventory is None:
        raise _rejected(file, tree, problems)
    return inventory


def check_profiles(inventory: Inventory, check: Callable[[Mapping[str, Any]], object]) -> None:
    """Hold every value of a ``profile`` to ``check``, which the emulator offers, and place its errors.

    :param check: raises ConfigurationError for a name or a value that it does not know.
    :raises ConfigurationError: what ``check`` rejects, each with file, line and key.
    """
    problems: list[tuple[Keys, str]] = []
    for lab in inventory.labs.values():
        for host, card in lab.cards():
            keys: Keys = ("labs", lab.name, "hosts", host.name, "cards", card.name, "emulated", "profile")
            for name, value in (card.emulated.profile if card.emulated else {}).items():
                try:
                    check({name: value})
                except ConfigurationError as error:
                    problems.append(((*keys, name), " ".join(filter(None, (error.message, error.hint)))))
    if problems:
        raise _rejected(inventory.path, _read(inventory.path), problems)


def _read(file: Path) -> CommentedMap:
    try:
        with file.open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            raise _no_inventory(file, f"it is longer than {_LARGEST_FILE} bytes")
        text = content.decode("utf-8-sig")
        _check_depth(text, file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReusedAnchorWarning)  # as `load_plain` does
            tree = YAML().load(text)
        _expanded(tree, file, {})
    except OSError as error:
        raise ConfigurationError(
            f"The inventory {file} cannot be read: {error.strerror}.",
            hint=_ANOTHER_FILE,
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file} is not a text file: {error}.", hint=_ANOTHER_FILE) from None
    except MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        problem = ", ".join(part.strip() for part in (error.context, error.problem) if part)
        problem = problem.partition(" with value ")[0]  # ruamel repeats the values of a duplicate key
        raise ConfigurationError(f"{file}{line}: {problem}.", hint="Mend the YAML there.") from None
    except YAMLError as error:
        raise ConfigurationError(f"{file} is not YAML: {error}.", hint="Mend the YAML there.") from None
    except RecursionError:
        raise _no_inventory(file, "it is nested too deeply") from None
    except (ValueError, OverflowError, TypeError, AttributeError, LookupError) as error:
        # A value with the form of a date, a number or a key that is none; ruamel lets each error through.
        raise _no_inventory(file, f"it holds a value that cannot be read: {str(error)[:80]}") from None
    if not isinstance(tree, CommentedMap):
        raise ConfigurationError(
            f"{file} holds no mapping; it begins with version, default_lab and labs.",
            hint="`hil inventory schema` prints every key.",
        )
    return tree


def _check_depth(text: str, file: Path) -> None:
    try:
        check_depth(text)
    except ConfigurationError as error:
        raise _no_inventory(file, error.message) from None


def _no_inventory(file: Path, why: str) -> ConfigurationError:
    return ConfigurationError(f"{file} is no inventory: {why}.", hint=_ANOTHER_FILE)


def _expanded(node: Any, file: Path, known: dict[int, int]) -> int:
    """Return how many values ``node`` holds once every alias stands for what it refers to.

    :param known: the nodes that were counted already. :raises ConfigurationError: too many.
    """
    if not isinstance(node, (Mapping, list)):
        return 1
    if id(node) not in known:
        inner = node.values() if isinstance(node, Mapping) else node
        known[id(node)] = 1 + sum(_expanded(value, file, known) for value in inner)
    if known[id(node)] > _MOST_VALUES:
        raise _no_inventory(file, f"its aliases make more than {_MOST_VALUES} values of it")
    return known[id(node)]


def _secrets_in(node: Any, keys: Keys = ()) -> list[tuple[Keys, str]]:
    """Find literal secrets; what is found is never repeated in the message."""
    if isinstance(node, Mapping):
        found: list[tuple[Keys, str]] = []
        for key, value in node.items():
            here = (*keys, key)
            literal = key == "credentials" and isinstance(value, str)
            if literal or str(key).lower() in _SECRET_KEYS:
                found.append((here, f"a literal secret may not stand in the inventory. {_SECRET_HINT}"))
            else:
                found.extend(_secrets_in(value, here))
        return found
    if isinstance(node, list):
        return [item for index, value in enumerate(node) for item in _secrets_in(value, (*keys, index))]
    return []


def _plain(node: Any, keys: Keys, problems: list[tuple[Keys, str]]) -> Any:
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


def _keys_of(details: ErrorDetails) -> Keys:
    broken = details.get("ctx", {}).get("error")
    below = broken.keys if isinstance(broken, EntryError) else ()
    return (*(key for key in details["loc"] if key != "[key]"), *below)


def _explain(details: ErrorDetails) -> str:
    """Return what is wrong in words that say what is allowed."""
    keys, given = _keys_of(details), details["input"]
    # What stands below `credentials` may be the secret itself: it is never repeated.
    shown = (
        f" (it is {given!r})" if isinstance(given, str | int | float) and "credentials" not in keys else ""
    )
    match details["type"]:
        case "extra_forbidden":
            return f"unknown key; {_guess(str(keys[-1]), _allowed_keys(keys[:-1]))}"
        case "missing":
            return "is missing"
        case "literal_error":
            allowed = [str(value) for value in get_args(_annotation_at(keys))]
            return f"{given!r} is not allowed; {_guess(str(given), allowed)}"
        case "model_type" | "dict_type":
            return f"holds no keys{shown}; allowed: {', '.join(_allowed_keys(keys)) or 'entries by name'}"
        case "tuple_type" | "list_type":
            return f"should be a list{shown}"
        case "too_short":
            return "is empty; give at least one"
        case "value_error":
            return str(details["ctx"]["error"])
        case _:
            return f"{details['msg'].replace('Input should', 'should')}{shown}"


def _guess(word: str, allowed: Sequence[str]) -> str:
    close = nearest(word, list(allowed))
    return f"{f'did you mean {close!r}? ' if close else ''}allowed: {', '.join(allowed)}"


def _allowed_keys(keys: Keys) -> list[str]:
    model = _annotation_at(keys)
    return sorted(set(model.model_fields) - {"name", "path"}) if _is_model(model) else []


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _annotation_at(keys: Keys) -> Any:
    """Follow ``keys`` through the schema and return the type that is expected there."""
    annotation: Any = Inventory
    for key in keys:
        if _is_model(annotation):
            field = annotation.model_fields.get(str(key))
            annotation = _bare(field.annotation) if field else None
        else:
            annotation = _bare(get_args(annotation)[-1 if isinstance(key, str) else 0])
    return annotation


def _bare(annotation: Any) -> Any:
    """Take ``Annotated`` and ``| None`` away."""
    while get_origin(annotation) in (Annotated, Union, types.UnionType):
        annotation = next(arg for arg in get_args(annotation) if arg is not types.NoneType)
    return annotation


def _line_of(tree: CommentedMap, keys: Keys) -> int:
    """Return the line (from 1) of the deepest of ``keys`` that stands in the file."""
    node: Any = tree
    line = 0
    for key in keys:
        try:
            position = node.lc.item(key) if isinstance(node, CommentedSeq) else node.lc.key(key)
            line, node = position[0], node[key]
        except (AttributeError, LookupError, TypeError):
            break  # a missing key, or one that YAML merged from elsewhere: its parent's line has to do
    return line + 1


def _rejected(file: Path, tree: CommentedMap, problems: list[tuple[Keys, str]]) -> ConfigurationError:
    lines = sorted((_line_of(tree, keys), ".".join(map(str, keys)), text) for keys, text in problems)
    listed = "\n".join(f"{file}:{line}: {key}: {text.rstrip('.')}." for line, key, text in lines)
    return ConfigurationError(listed, hint="`hil inventory schema` prints every key and what it may hold.")
