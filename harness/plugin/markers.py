"""What the markers of a scenario say, and whether they can be meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import ConfigurationError
from harness.plugin.releases import RELEASE, release_of
from harness.scenarios.given import KEYS

if TYPE_CHECKING:
    from _pytest.nodes import Node

    from harness.judgement.model import Expectation
    from harness.plugin.session import HilSession

EXPECTS, GIVEN, REQUIRES = "hil_expects", "hil_given", "hil_requires"
REGISTRY, REQUIREMENT, WEAR = "hil_registry", "hil_requirement", "hil_wear"
_EXPECTS_HINT = "It takes outcome='FAILED' and verdicts={'fpgasupdate': 'FALSE_SUCCESS'}, each optional."
_GIVEN_HINT = "It takes root='A', cancelled=[0], flash_count=1500 and bmc_root='A', each optional."


def expectation_of(node: Node) -> Expectation:
    """Return what the marker ``hil_expects`` of a test states.

    :raises ConfigurationError: it names an unknown outcome or verdict, or says something else.
    """
    from harness.judgement.model import Expectation, Outcome, VerdictKind

    marker = node.get_closest_marker(EXPECTS)
    if marker is None:
        return Expectation()
    _only_keywords(node, marker, ("outcome", "verdicts"), _EXPECTS_HINT)
    outcome = _word(node, "outcome", marker.kwargs.get("outcome", "AS_INTENDED"), Outcome)
    verdicts = marker.kwargs.get("verdicts", {})
    if not isinstance(verdicts, Mapping):
        raise _wrong(node, EXPECTS, f"verdicts={verdicts!r}", _EXPECTS_HINT)
    kinds = {str(reporter): _word(node, "verdict", kind, VerdictKind) for reporter, kind in verdicts.items()}
    return Expectation(Outcome(outcome), {reporter: VerdictKind(kind) for reporter, kind in kinds.items()})


def given_of(item: pytest.Item) -> dict[str, Any]:
    """Return the state that the test's parameter ``given`` or its marker ``hil_given`` names."""
    callspec = getattr(item, "callspec", None)
    if callspec and "given" in callspec.params:
        return dict(callspec.params["given"])
    marker = item.get_closest_marker(GIVEN)
    return dict(marker.kwargs) if marker else {}


def parametrizes(node: Node, name: str) -> bool:
    """Return whether a test itself says by ``parametrize`` what its fixture ``name`` is."""
    for marker in node.iter_markers("parametrize"):
        names = marker.kwargs.get("argnames", marker.args[0] if marker.args else ())
        if name in ([part.strip() for part in names.split(",")] if isinstance(names, str) else names):
            return True
    return False


def required_by(node: Node) -> list[str]:
    """Return the capabilities that a test requires of the host of its device."""
    return [str(name) for marker in node.iter_markers(REQUIRES) for name in marker.args]


def check_markers(node: Node, session: HilSession, fixtures: Iterable[str]) -> None:
    """Hold the markers of a test to what they can mean, before anything runs.

    :param fixtures: the names of the fixtures that the test asks for.
    :raises ConfigurationError: with what is allowed.
    """
    if not any(marker.name in (EXPECTS, GIVEN, REQUIRES, RELEASE) for marker in node.iter_markers()):
        return
    expectation_of(node)
    given = node.get_closest_marker(GIVEN)
    if given is not None:
        _only_keywords(node, given, KEYS, _GIVEN_HINT)
        _meant(node, GIVEN, lambda: check_given(dict(given.kwargs), session))
        _needs(node, GIVEN, ("card", "system"), fixtures)
    if node.get_closest_marker(RELEASE) is not None:
        release_of(node)
        _needs(node, RELEASE, ("system", "cloud"), fixtures)
    for marker in node.iter_markers(REQUIRES):
        if marker.kwargs or not marker.args:
            raise _wrong(node, REQUIRES, _shown(marker), "It takes names: hil_requires('power').")
        _meant(node, REQUIRES, lambda: _check_capabilities(required_by(node)))
        _needs(node, REQUIRES, ("card", "host"), fixtures)


def check_given(given: Mapping[str, Any], session: HilSession) -> None:
    """:raises ConfigurationError: ``given`` is no state of a card, or names a root key that there is not."""
    from harness.plugin.images import RootHashes
    from harness.scenarios.given import Given

    # Only the names count here; the hashes behind them cost a signature each.
    names = dict.fromkeys(RootHashes(session.images), "") if {"root", "bmc_root"} & given.keys() else {}
    Given.parse(given, names)


def _check_capabilities(names: list[str]) -> None:
    from harness.inventory.entries import unknown_name
    from harness.lab.capabilities import CAPABILITIES

    for name in names:
        if name not in CAPABILITIES:
            raise unknown_name("capability", name, list(CAPABILITIES), "any host of a lab")


def _meant(node: Node, marker: str, check: Callable[[], None]) -> None:
    """Let an error of ``check`` say where it was found."""
    try:
        check()
    except ConfigurationError as error:
        raise ConfigurationError(f"{node.nodeid}: {marker}: {error.message}", hint=error.hint) from None


def _needs(node: Node, marker: str, one_of: tuple[str, ...], fixtures: Iterable[str]) -> None:
    if not set(one_of) & set(fixtures):
        raise ConfigurationError(
            f"{node.nodeid}: {marker} is about a {' or a '.join(one_of)}, and the test asks for none.",
            hint=f"Give it the fixture {one_of[0]!r}, or one that needs it, such as 'flash'.",
        )


def _only_keywords(node: Node, marker: pytest.Mark, known: tuple[str, ...], hint: str) -> None:
    if marker.args or not marker.kwargs.keys() <= set(known):
        raise _wrong(node, marker.name, _shown(marker), hint)


def _word(node: Node, what: str, value: object, known: Iterable[Any]) -> str:
    words = [str(word.value) for word in known]
    text = str(getattr(value, "value", value))
    if text not in words:
        raise _wrong(node, EXPECTS, f"the {what} {text!r}", f"Known: {', '.join(words)}.")
    return text


def _wrong(node: Node, marker: str, said: str, hint: str) -> ConfigurationError:
    return ConfigurationError(f"{node.nodeid}: the marker {marker} says {said}.", hint=hint)


def _shown(marker: pytest.Mark) -> str:
    words = [*map(repr, marker.args), *(f"{name}={value!r}" for name, value in marker.kwargs.items())]
    return f"({', '.join(words)})"
