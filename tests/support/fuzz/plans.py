"""Files that authors of plans write: scenarios, campaigns, requirements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from support.fuzz.documents import _hard_yaml, as_file
from support.fuzz.engine import Target
from support.fuzz.mutate import TextMutator
from support.fuzz.seeds import ROOT

from harness.errors import ConfigurationError
from harness.plugin import steps as _fill_the_steps  # noqa: F401
from harness.scenarios.campaigns import load_campaign
from harness.scenarios.files import load_scenario
from harness.scenarios.kinds import KINDS
from harness.scenarios.requirements import load_requirements
from harness.scenarios.steps import STEPS

IMAGES = ("A/csk0", "A/csk0-v2", "A/csk1", "unsigned", "root-key-A", "cancel-A-csk0", "report/11", "report/2")
_WORDS = (
    *(*STEPS, "use", "with", "as", "about", "source", "given", "card", "over", "steps", "expect", "outcome"),
    *("verdicts", "$image", "$$", "lands", "unchanged 0x11", "keyword", "ids", "repeat", "duration", "2 h"),
    *(
        "order",
        "random",
        "seed",
        "stop",
        "budget",
        "flashes",
        "null",
        "- ",
        ": ",
        "{",
        "}",
        "[",
        "]",
        "&a",
        "*a",
    ),
)


def check_scenario(data: bytes) -> str:
    """A scenario is taken or refused with file and line; what is taken has steps that there are."""
    path = as_file(data, "fuzzed.scenario.yaml")
    try:
        scenario = load_scenario(path, IMAGES)
    except ConfigurationError as error:
        assert path.name in error.message
        assert error.hint
        assert len(error.message) < 1_000_000
        return "refused"
    for call in scenario.calls:
        assert call.step.kinds.keys() >= call.arguments.keys()
        assert set(call.step.kinds.values()) <= KINDS.keys()
        assert all(
            call.arguments.get(name) is not None or not call.step.needs(name) for name in call.step.kinds
        )
    return f"{min(len(scenario.calls), 20)} steps"


def _held(load: Callable[[Any], Any], name: str) -> Callable[[bytes], str]:
    def check(data: bytes) -> str:
        path = as_file(data, name)
        try:
            load(path)
        except ConfigurationError as error:
            assert path.name in error.message
            return "refused"
        return "read"

    return check


def _files(pattern: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [path.read_bytes() for path in sorted((ROOT / "testplans").rglob(pattern))]


def _campaigns() -> Sequence[bytes]:
    """Those of the project; what they choose is beside them, and not beside what is fuzzed."""
    beside = f"{ROOT}/testplans/".encode()
    return [data.replace(b"../", beside) for data in _files("*.campaign.yaml")()]


def _mutator() -> TextMutator:
    return TextMutator(_WORDS, blow_up=1 << 14)


_KEPT = {"share": 1, "hard": _hard_yaml, "cpu_seconds": 20.0}
TARGETS = (
    Target("scenario-file", _files("*.scenario.yaml"), check_scenario, _mutator, short=60, **_KEPT),
    Target(
        "campaign",
        _campaigns,
        _held(load_campaign, "x.campaign.yaml"),
        _mutator,
        short=40,
        **_KEPT,
    ),
    Target(
        "requirements",
        _files("requirements.yaml"),
        _held(load_requirements, "r.yaml"),
        _mutator,
        short=40,
        **_KEPT,
    ),
)
