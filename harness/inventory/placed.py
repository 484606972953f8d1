"""YAML files held to a pydantic model: errors name file, line, key, what is allowed, the nearest spelling."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError

from harness.errors import ConfigurationError
from harness.inventory.entries import EntryError, nearest
from harness.yaml_text import check_depth

Keys = tuple[str | int, ...]
#: What is wrong at a place of a file.
Problem = tuple[Keys, str]

#: An inventory of 500 cards has about 10,000 values and 100,000 bytes.
_MOST_VALUES = 200_000
_LARGEST_FILE = 1 << 23


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of file, in the words of its errors.

    ``what``: its name. ``begins``: the keys that it begins with. ``schema``: the hint that says how its keys
    are shown. ``another``: the hint where a file is none of this kind.
    """

    what: str
    begins: str
    schema: str
    another: str

    def is_none(self, file: Path, why: str) -> ConfigurationError:
        """Return the error for a file that is none of this kind."""
        return ConfigurationError(f"{file} is no {self.what}: {why}.", hint=self.another)

    def rejected(self, file: Path, tree: CommentedMap, problems: Iterable[Problem]) -> ConfigurationError:
        """Return the error that lists ``problems``, each with its line."""
        lines = sorted((line_of(tree, keys), ".".join(map(str, keys)), text) for keys, text in problems)
        listed = "\n".join(
            f"{file}:{line}: {key}: {text.rstrip('.')}{'' if text.endswith('?') else '.'}"
            for line, key, text in lines
        )
        return ConfigurationError(listed, hint=self.schema)


def read_placed(file: Path, form: Form) -> CommentedMap:
    """Return the mapping in ``file``, which knows the line of each of its keys.

    :raises ConfigurationError: it cannot be read, is not YAML, or holds something else or too much.
    """
    return placed(content_of(file, form), file, form)


def content_of(file: Path, form: Form) -> bytes:
    """Return the bytes of ``file``. :raises ConfigurationError: it cannot be read, or is too long."""
    try:
        with file.open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigurationError(
            f"The {form.what} {file} cannot be read: {error.strerror}.", hint=form.another
        ) from None
    if len(content) > _LARGEST_FILE:
        raise form.is_none(file, f"it is longer than {_LARGEST_FILE} bytes")
    return content


def placed(content: bytes, file: Path, form: Form) -> CommentedMap:
    """Return the mapping that ``content`` holds; it knows the line of each of its keys in ``file``.

    :raises ConfigurationError: it is not YAML, or holds something else or too much.
    """
    try:
        text = content.decode("utf-8-sig")
        _check_depth(text, file, form)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReusedAnchorWarning)  # as `load_plain` does
            tree = YAML().load(text)
        _expanded(tree, file, form, {})
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file} is not a text file: {error}.", hint=form.another) from None
    except MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        problem = ", ".join(part.strip() for part in (error.context, error.problem) if part)
        problem = problem.partition(" with value ")[0]  # ruamel repeats the values of a duplicate key
        raise ConfigurationError(f"{file}{line}: {problem}.", hint="Mend the YAML there.") from None
    except YAMLError as error:
        raise ConfigurationError(f"{file} is not YAML: {error}.", hint="Mend the YAML there.") from None
    except RecursionError:
        raise form.is_none(file, "it is nested too deeply") from None
    except (ValueError, OverflowError, TypeError, AttributeError, LookupError) as error:
        # A value with the form of a date, a number or a key that is none; ruamel lets each error through.
        raise form.is_none(file, f"it holds a value that cannot be read: {str(error)[:80]}") from None
    if not isinstance(tree, CommentedMap):
        raise ConfigurationError(f"{file} holds no mapping; it begins with {form.begins}.", hint=form.schema)
    return tree


def _check_depth(text: str, file: Path, form: Form) -> None:
    try:
        check_depth(text)
    except ConfigurationError as error:
        raise form.is_none(file, error.message) from None


def _expanded(node: Any, file: Path, form: Form, known: dict[int, int]) -> int:
    """Return how many values ``node`` holds once every alias stands for what it refers to.

    :param known: the nodes that were counted already. :raises ConfigurationError: too many.
    """
    if not isinstance(node, (Mapping, list)):
        return 1
    if id(node) not in known:
        inner = node.values() if isinstance(node, Mapping) else node
        known[id(node)] = 1 + sum(_expanded(value, file, form, known) for value in inner)
    if known[id(node)] > _MOST_VALUES:
        raise form.is_none(file, f"its aliases make more than {_MOST_VALUES} values of it")
    return known[id(node)]


def line_of(tree: CommentedMap, keys: Keys) -> int:
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


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Return what ``error`` of ``model`` finds, in words that say what is allowed.

    A list is not said to be empty where only what is wrong stands in it: pydantic leaves that out.
    """
    return [
        (_keys_of(details), _explain(details, model))
        for details in error.errors()
        if not (details["type"] == "too_short" and details["input"])
    ]


def guess(word: str, allowed: Sequence[str]) -> str:
    """Return the end of a message about a ``word`` that is not among ``allowed``: the nearest, and all."""
    close = nearest(word, list(allowed))
    return f"{f'did you mean {close!r}? ' if close else ''}allowed: {', '.join(allowed)}"


def _keys_of(details: ErrorDetails) -> Keys:
    broken = details.get("ctx", {}).get("error")
    below = broken.keys if isinstance(broken, EntryError) else ()
    return (*(key for key in details["loc"] if key != "[key]"), *below)


def _explain(details: ErrorDetails, model: type[BaseModel]) -> str:
    keys, given = _keys_of(details), details["input"]
    # What stands below `credentials` may be the secret itself: it is never repeated.
    shown = (
        f" (it is {given!r})" if isinstance(given, str | int | float) and "credentials" not in keys else ""
    )
    match details["type"]:
        case "extra_forbidden":
            return f"unknown key; {guess(str(keys[-1]), _allowed_keys(model, keys[:-1]))}"
        case "missing":
            return "is missing"
        case "literal_error":
            allowed = [str(value) for value in get_args(_annotation_at(model, keys))]
            return f"{given!r} is not allowed; {guess(str(given), allowed)}"
        case "model_type" | "dict_type":
            allowed = _allowed_keys(model, keys)
            return f"holds no keys{shown}; allowed: {', '.join(allowed) or 'entries by name'}"
        case "tuple_type" | "list_type":
            return f"should be a list{shown}"
        case "too_short":
            return "is empty; give at least one"
        case "value_error":
            return str(details["ctx"]["error"])
        case _:
            return f"{details['msg'].replace('Input should', 'should')}{shown}"


def _allowed_keys(model: type[BaseModel], keys: Keys) -> list[str]:
    at = _annotation_at(model, keys)
    if not _is_model(at):
        return []
    return sorted({field.alias or name for name, field in at.model_fields.items()} - {"name", "path"})


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _annotation_at(model: type[BaseModel], keys: Keys) -> Any:
    """Follow ``keys`` through the schema and return the type that is expected there."""
    annotation: Any = model
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
