"""Makes one scenario of what a run did, from its history alone: settings, steps, faults, what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from harness.errors import ConfigurationError
from harness.inventory.entries import nearest
from harness.judgement.grouping import listed
from harness.judgement.judge import ScenarioJudgement, judge, scenario_records
from harness.judgement.model import VerdictKind, worst_outcome, worst_verdict
from harness.judgement.records import Fault, Record, RunStarted, Setting
from harness.scenarios.written_steps import WrittenSteps

#: What each scenario begins anew in an emulated lab, so that it cannot follow another one.
_BEGUN_ANEW: Final = frozenset({"system", "cloud"})
_GIVEN: Final = ("card", "needs", "lab", "system", "release", "way", "registry")
#: Parts of a setting that are no text.
_TYPES: Final[Mapping[str, type]] = {"card": Mapping, "release": Mapping, "needs": list, "named": bool}
_OF_PYTHON: Final = "what Python asserted by itself is not exported: {names}"
_LEFT: Final = "the state that its card was left in by what ran before is not in it: {names}"
_NOT_REACHED: Final = "a fault did not come to its point, so that it is not as stated again: {names}"
#: Ends of a scenario after which an emulated lab fits a fresh card.
_FAILED: Final = frozenset({"not-as-stated", "INFRA"})
_UNRECORDED: Final = (
    "its steps, and what it was given: it was recorded by a version of hil that did not record these"
)


class NotExportable(ConfigurationError):
    """What a run did cannot be told by a scenario file; the message lists what lacks."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A scenario made of a run. ``data``: the content of its file. ``scenarios``: what it was made of.

    ``options``: of `hil run`, without which it does not meet the same lab. ``remarks``: what is not in it.
    """

    data: Mapping[str, Any]
    run: str
    scenarios: tuple[str, ...]
    options: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the file: how it is run, and what is not in it, stand in comments at its head."""
        from harness.scenarios.writing import scenario_text

        command = f"hil run FILE {' '.join(self.options)}".rstrip()
        head = [f"Made of the run {self.run} by `hil export`; done again by: {command}", *self.remarks]
        return "".join(f"# {line}\n" for line in head) + scenario_text(self.data)


@dataclass
class _Part:
    """One scenario of the run. ``before``: how the one before it on its card ended; empty for the first."""

    judgement: ScenarioJudgement
    records: Sequence[Record]
    setting: dict[str, Any] = field(default_factory=dict)
    before: str = ""

    def __post_init__(self) -> None:
        for record in self.records:
            if isinstance(record, Setting):
                fits = ((key, value) for key, value in record.values.items() if _fits(key, value))
                self.setting |= dict(fits)
        self.written = WrittenSteps(self.records)

    @property
    def name(self) -> str:
        """Its node id."""
        return self.judgement.name

    @property
    def device(self) -> str:
        """The card that it is about; empty where it is about none."""
        subject = self.judgement.subject
        return str(self.setting.get("device", "")) or (subject.name if subject is not None else "")

    @property
    def lacks(self) -> list[str]:
        """Why it cannot be done again."""
        lacking = self.written.lacks
        unrecorded = bool(lacking) and not self.setting and not self.written.fixtures
        return [_UNRECORDED] if unrecorded else lacking

    @property
    def unreached(self) -> bool:
        """Whether a fault of it did not come to its point, which no expectation can state."""
        return any(isinstance(record, Fault) and record.state == "not-reached" for record in self.records)

    @property
    def fit(self) -> list[Any]:
        """The step that has its card as it began, where it follows another scenario on that card."""
        if card := dict(self.setting.get("card", {})):
            return [{"fit": card.pop("root", None), **card}]
        return ["fit"] if self.device and self.before in _FAILED else []

    @property
    def came_to_something(self) -> bool:
        """Whether anything was done in it."""
        return bool(self.written.steps or self.lacks)


def export(records: Iterable[Record], *, scenario: str = "", device: str = "") -> Exported:
    """Return what the run of ``records`` did as one scenario, which expects what was found then.

    :param scenario: only this one, by its node id or a part of it. :param device: only what was about this
        card.
    :raises NotExportable: something was done that a file cannot say, or is not in the history.
    :raises ConfigurationError: there is no such scenario or device.
    """
    kept = list(records)
    judgement = judge(kept)
    every = [_Part(*each) for each in zip(judgement.scenarios, scenario_records(kept), strict=True)]
    _follow(every)
    parts = _of_device(_named(every, scenario), device)
    done = [part for part in parts if part.came_to_something]
    if not done:
        raise NotExportable("Nothing was done in it: no scenario took a step.", hint=_states(parts))
    lacks = [f"{part.name}: {why}" for part in done for why in dict.fromkeys(part.lacks)]
    if lacks:
        raise NotExportable(
            "\n  ".join(["It cannot be exported; what lacks:", *lacks]),
            hint="Name a scenario that can be with --scenario, or run it again with this version.",
        )
    by_device: dict[str, list[_Part]] = {}
    for part in done:
        by_device.setdefault(part.device, []).append(part)
    made = {name: _merged(found) for name, found in by_device.items()}
    first = next(iter(made.values()))
    if any(each != first for each in made.values()):
        raise NotExportable(
            f"Not the same was done to, or found of, {', '.join(name or 'no card' for name in made)}.",
            hint="Name one with --device, or one scenario with --scenario.",
        )
    run = judgement.runs[0] if judgement.runs else None
    left = [part for part in parts if not part.came_to_something]
    told = [f"left out, since nothing was done in them: {_states(left)}"] if left else []
    options = _options(run, first["given"].get("release"))
    return Exported(
        {"about": _about(run, done), **first},
        run.run if run is not None else "?",
        tuple(part.name for part in done),
        tuple(options),
        (*_remarks(done), *told),
    )


def _follow(parts: Iterable[_Part]) -> None:
    """Tell each part how the one before it on its card ended."""
    ends: dict[str, str] = {}
    for part in parts:
        part.before = ends.get(part.device, "")
        ends[part.device] = part.judgement.state


def _named(parts: list[_Part], scenario: str) -> list[_Part]:
    found = [part for part in parts if part.name == scenario] or [p for p in parts if scenario in p.name]
    if not found:
        names = [part.name for part in parts]
        close = nearest(scenario, names)
        raise ConfigurationError(
            f"No scenario of the run is called {scenario!r}." if parts else "No scenario ran in it.",
            hint=f"Did you mean {close!r}?" if close else f"It has {', '.join(names[:8]) or 'none'}.",
        )
    return found


def _of_device(parts: list[_Part], device: str) -> list[_Part]:
    found = [part for part in parts if device in ("", part.device)]
    if not found:
        known = sorted({part.device for part in parts if part.device})
        raise ConfigurationError(
            f"No scenario was about {device}.", hint=f"There are {', '.join(known) or 'none about cards'}."
        )
    return found


def _merged(parts: Sequence[_Part]) -> dict[str, Any]:
    """Return given, steps and expectation of scenarios that are done one after the other."""
    if len(parts) > 1 and any(part.written.fixtures & _BEGUN_ANEW for part in parts):
        raise NotExportable(
            f"Each of {len(parts)} scenarios began with a system of its own, which one scenario cannot.",
            hint=f"Name one with --scenario, such as --scenario '{parts[0].name}'.",
        )
    given = {key: parts[0].setting[key] for key in _GIVEN if parts[0].setting.get(key)}
    if parts[0].setting.get("named"):
        given["devices"] = [parts[0].device]
    needs = {need: None for part in parts for need in part.setting.get("needs", ())}
    steps = [*([] if "card" in given else parts[0].fit), *parts[0].written.steps]
    for before, part in pairwise(parts):
        if "push" in before.written.fixtures | part.written.fixtures:
            steps.append("new-repository")
        steps += [*part.fit, *part.written.steps]
    sources = {source: None for part in parts for source in part.written.sources}
    return {
        "source": "; ".join(sources) or "what was found when it ran",
        "given": given | ({"needs": list(needs)} if needs else {}),
        "steps": steps,
        "expect": found_in([part.judgement for part in parts]),
    }


def _fits(key: str, value: Any) -> bool:
    """Whether a part of a setting is of the type that it is written as; a history may be damaged."""
    return isinstance(value, _TYPES.get(key, str))


def found_in(judgements: Sequence[ScenarioJudgement]) -> dict[str, Any]:
    """Return what was found, as a scenario file expects it: what is not said is as intended, and true."""
    outcomes = [each.outcome for each in judgements if each.outcome is not None]
    verdicts: dict[str, list[VerdictKind]] = {}
    for judgement in judgements:
        for reporter, kind in judgement.verdicts.items():
            verdicts.setdefault(reporter, []).append(kind)
    worst = {reporter: worst_verdict(kinds) for reporter, kinds in verdicts.items()}
    told = {name: kind.value for name, kind in worst.items() if kind is not VerdictKind.MATCH}
    outcome = worst_outcome(outcomes).value if outcomes else "AS_INTENDED"
    return {
        **({"outcome": outcome} if outcome != "AS_INTENDED" else {}),
        **({"verdicts": told} if told else {}),
    }


def _about(run: RunStarted | None, parts: Sequence[_Part]) -> str:
    states = ", ".join(dict.fromkeys(part.judgement.state for part in parts))
    what = parts[0].name if len(parts) == 1 else f"{len(parts)} scenarios, from {parts[0].name} on,"
    campaign = run.options.get("campaign") if run is not None else None
    seed = run.options.get("seed") if run is not None else None
    of = f" of the campaign {campaign}{f', seed {seed},' if seed is not None else ''}" if campaign else ""
    return f"What {what}{of} did when it was {states}; it expects what was found then."


def _options(run: RunStarted | None, release: object) -> list[str]:
    """Return what `hil run` is told; a system's release and defects are what the scenario is given."""
    if run is None:
        return []
    options = [] if release else ["--lab", run.lab]
    if not release:
        if name := run.options.get("release"):
            options += ["--release", str(name)]
        for option, key in (("--defect", "defects"), ("--without-defect", "without_defects")):
            options += [word for name in listed(run.options, key) for word in (option, name)]
    if permitted := listed(run.options, "irreversible"):
        options += ["--irreversible", ",".join(permitted)]
    return options


def _remarks(parts: Sequence[_Part]) -> list[str]:
    remarks = [remark for part in parts for remark in part.written.remarks]
    # A scenario outside of the folder that was run in has a node id without its file.
    python = [p.name for p in parts if ".scenario.yaml::" not in p.name and not p.name.startswith("::")]
    if python:
        more = f" and {len(python) - 3} more" if len(python) > 3 else ""
        remarks.append(_OF_PYTHON.format(names=", ".join(python[:3]) + more))
    begun: dict[str, _Part] = {}
    for part in parts:
        begun.setdefault(part.device, part)
    left = [part.name for device, part in begun.items() if device and part.before and not part.fit]
    unreached = [part.name for part in parts if part.unreached]
    if unreached:
        remarks.append(_NOT_REACHED.format(names=", ".join(unreached)))
    if left:
        remarks.append(_LEFT.format(names=", ".join(left)))
    return list(dict.fromkeys(remarks))


def _states(parts: Sequence[_Part]) -> str:
    counts = Counter(part.judgement.state for part in parts)
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
