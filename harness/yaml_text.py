"""Plain data from a text of YAML that anybody may have written: given whole, or refused with the reason."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any

from harness.errors import ConfigurationError

#: Deeper than any file of ours; the parser needs seconds to find its own limit of about a thousand.
_DEEPEST = 50
_BRACKETS = re.compile(r"[\[{\]}]")
_DASHES = re.compile(rf"(?:- ){{{_DEEPEST}}}")

#: A file of ours has a few thousand values; aliases can make more of a few lines than any memory holds.
_MOST_VALUES = 200_000


def load_plain(text: str) -> Any:
    """Return what ``text`` holds, where each alias stands for what it refers to.

    :raises ConfigurationError: it is not YAML, or stands for more than can be; says where or why.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import ReusedAnchorWarning, YAMLError

    check_depth(text)
    try:
        with warnings.catch_warnings():
            # YAML allows it, and a long file would warn a thousand times.
            warnings.simplefilter("ignore", ReusedAnchorWarning)
            data = YAML(typ="safe", pure=True).load(text)
        _count(data, {})
    except YAMLError as error:
        raise ConfigurationError(f"this is no YAML: {error}") from error
    except RecursionError:
        raise ConfigurationError("it is nested too deeply") from None
    except (ValueError, OverflowError, TypeError, AttributeError, LookupError) as error:
        # A value with the form of a date, a number or a tag that is none; ruamel lets each error through.
        raise ConfigurationError(f"a value cannot be read: {str(error)[:80]}") from error
    return data


def check_depth(text: str) -> None:
    """:raises ConfigurationError: brackets or dashes of ``text`` are nested deeper than any of our files."""
    depth = 0
    for bracket in _BRACKETS.findall(text):
        depth += 1 if bracket in "[{" else -1
        if depth > _DEEPEST:
            break
    if depth > _DEEPEST or _DASHES.search(text):
        raise ConfigurationError(f"it is nested too deeply (more than {_DEEPEST} levels)")


def _count(node: Any, known: dict[int, int]) -> int:
    """Return how many values ``node`` stands for. :param known: the nodes that were counted already."""
    if not isinstance(node, (Mapping, list)):
        return 1
    if id(node) not in known:
        known[id(node)] = _MOST_VALUES  # a node that contains itself has no end
        inner = node.values() if isinstance(node, Mapping) else node
        known[id(node)] = 1 + sum(_count(value, known) for value in inner)
    if known[id(node)] > _MOST_VALUES:
        raise ConfigurationError(f"its aliases make more than {_MOST_VALUES} values of it")
    return known[id(node)]
