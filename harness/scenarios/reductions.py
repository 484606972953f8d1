"""What is less than a scenario: with fewer steps, with fewer or simpler arguments, with less given. Pure."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from harness.registry.recipes import RECIPES
from harness.scenarios.kinds import REFERENCE, STEPS_KIND
from harness.scenarios.steps import STEPS, Step

Data = dict[str, Any]
#: Where something stands in a scenario's data: keys and places, from the outside in.
Place = tuple[str | int, ...]
#: Says whether a candidate still shows what is kept; it is called once for each.
Accept = Callable[[Data], bool]

#: Simplest first; an image is tried in place of those that come after it, and of those that are not here.
_SIMPLER: Final[Mapping[str, tuple[str, ...]]] = {
    "image": ("unsigned", "A/csk0", "A/csk1"),
    "content": tuple(RECIPES),
}
#: Arguments that mean something together alone.
_TOGETHER: Final = ({"at", "action"},)
#: What a scenario is given that decides where it runs, not what is in it.
_KEPT: Final = ("lab", "system", "registry", "devices")


def shrunk(data: Data, accept: Accept) -> Data:
    """Return the least that :func:`fewer_steps` and :func:`simpler` come to while ``accept`` says yes."""
    while True:
        less = simplest(fewest_steps(data, accept), accept)
        if less == data:
            return data
        data = less


def fewest_steps(data: Data, accept: Accept) -> Data:
    """Leave out steps while ``accept`` says yes (delta debugging: halves first, then ever smaller parts)."""
    places = [("steps",), *step_lists(data)]
    for place in places:
        if _at(data, place) is not None:
            data = _fewer_at(data, place, accept)
    return data


def simplest(data: Data, accept: Accept) -> Data:
    """Make single steps and what is given simpler while ``accept`` says yes."""
    going = True
    while going:
        found = next((each for each in simpler(data) if accept(each)), None)
        going = found is not None
        data = found if found is not None else data
    return data


def _fewer_at(data: Data, place: Place, accept: Accept) -> Data:
    parts = 2
    while (steps := _at(data, place)) is not None and len(steps) > 1:
        size = -(-len(steps) // parts)
        cuts = (steps[:at] + steps[at + size :] for at in range(0, len(steps), size))
        less = (repaired(_put(data, place, rest)) for rest in cuts if rest)
        found = next((each for each in less if each is not None and accept(each)), None)
        if found is not None:
            data, parts = found, max(parts - 1, 2)
        elif parts >= len(steps):
            break
        else:
            parts = min(2 * parts, len(steps))
    return data


def simpler(data: Data) -> Iterator[Data]:
    """Yield what is simpler by one thing, the greatest differences first."""
    made = chain(_unwrapped(data), _without_arguments(data), _with_simpler_values(data))
    yield from filter(None, map(repaired, made))
    yield from _with_less_given(data)


def repaired(data: Data) -> Data | None:
    """Return ``data`` without steps that take a result which no step gives; None: no step is left."""
    known: set[str] = set()

    def kept(steps: Sequence[Any]) -> list[Any]:
        found = []
        for each in steps:
            if not isinstance(each, Mapping):
                found.append(each)
                continue
            inner = _inner_keys(each)
            own = {key: value for key, value in each.items() if key not in inner}
            if not set(_references(own)) <= known:
                continue
            made = dict(each) | {key: kept(each[key]) for key in inner}
            if all(made[key] for key in inner):
                known.update([str(each["as"])] if each.get("as") else [])
                found.append(made)
        return found

    steps = kept(data["steps"])
    return {**data, "steps": steps} if steps else None


def without_unused_names(data: Data) -> Data:
    """Return ``data`` without names of results that nothing takes."""
    used = set(_references(data["steps"]))

    def plain(steps: Sequence[Any]) -> list[Any]:
        return [_bare(each) for each in steps]

    def _bare(each: Any) -> Any:
        if not isinstance(each, Mapping):
            return each
        inner = _inner_keys(each)
        made = {key: plain(value) if key in inner else value for key, value in each.items()}
        if made.get("as") not in used:
            made.pop("as", None)
        return next(iter(made)) if list(made.values()) == [None] else made

    return {**data, "steps": plain(data["steps"])}


def step_lists(data: Data) -> list[Place]:
    """Return where steps stand within steps, outer ones first."""
    found: list[Place] = []

    def search(steps: Sequence[Any], place: Place) -> None:
        for at, each in enumerate(steps):
            for key in _inner_keys(each) if isinstance(each, Mapping) else ():
                found.append((*place, at, key))
                search(each[key], (*place, at, key))

    search(data["steps"], ("steps",))
    return found


# -- candidates ---------------------------------------------------------------------------------------


def _steps_in(data: Data) -> Iterator[tuple[Place, Data, Step]]:
    for place in [("steps",), *step_lists(data)]:
        for at, each in enumerate(_at(data, place) or ()):
            if isinstance(each, dict) and (step := STEPS.get(next(iter(each)))):
                yield (*place, at), each, step


def _unwrapped(data: Data) -> Iterator[Data]:
    """Yield steps in place of the step that takes them."""
    for place, each, _ in _steps_in(data):
        for key in _inner_keys(each):
            *above, at = place
            steps = list(_at(data, tuple(above)) or ())
            assert isinstance(at, int)
            yield _put(data, tuple(above), steps[:at] + each[key] + steps[at + 1 :])


def _without_arguments(data: Data) -> Iterator[Data]:
    for place, each, step in _steps_in(data):
        for name, kind in step.kinds.items():
            if name not in each or name == step.main or step.needs(name) or kind == STEPS_KIND:
                continue
            gone = next((group for group in _TOGETHER if name in group and group <= each.keys()), {name})
            yield _put(data, place, {key: value for key, value in each.items() if key not in gone})


def _with_simpler_values(data: Data) -> Iterator[Data]:
    for place, each, step in _steps_in(data):
        for name, kind in step.kinds.items():
            key = step.name if name == step.main else name
            for value in _simpler_value(kind, each.get(key)):
                yield _put(data, (*place, key), value)


def _simpler_value(kind: str, value: Any) -> Iterator[Any]:
    if kind in _SIMPLER and isinstance(value, str):
        known = _SIMPLER[kind]
        yield from known[: known.index(value)] if value in known else known
    elif kind in ("count", "seconds") and isinstance(value, (int, float)):
        yield from (each for each in sorted({1, value // 2}) if 0 < each < value)
    elif isinstance(value, Mapping) and len(value) > 1 and kind in ("labels", "fields", "verdicts"):
        yield from ({k: v for k, v in value.items() if k != gone} for gone in value)
    elif isinstance(value, list) and len(value) > 1 and kind != STEPS_KIND:
        yield from (value[:at] + value[at + 1 :] for at in range(len(value)))


def _with_less_given(data: Data) -> Iterator[Data]:
    given = data.get("given", {})
    for key, value in given.items():
        if key in _KEPT:
            continue
        if key != "release":
            yield {**data, "given": {k: v for k, v in given.items() if k != key}}
        if isinstance(value, Mapping):
            for inner, held in value.items():
                less = {k: v for k, v in value.items() if k != inner}
                if less and inner != "name":
                    yield {**data, "given": {**given, key: less}}
                for at in range(len(held) if isinstance(held, (list, tuple)) and len(held) > 1 else 0):
                    fewer = {**value, inner: [*held[:at], *held[at + 1 :]]}
                    yield {**data, "given": {**given, key: fewer}}


# -- places -------------------------------------------------------------------------------------------


def _inner_keys(each: Mapping[str, Any]) -> list[str]:
    """Return the keys of a step that hold steps."""
    step = STEPS.get(next(iter(each), ""))
    if step is None:
        return []
    keys = [step.name if n == step.main else n for n, kind in step.kinds.items() if kind == STEPS_KIND]
    return [key for key in keys if isinstance(each.get(key), list)]


def _at(data: Any, place: Place) -> Any:
    """Return what stands at a place; None where nothing does any more."""
    for key in place:
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _put(data: Data, place: Place, value: Any) -> Data:
    made = copy.deepcopy(data)
    *above, last = place
    _at(made, tuple(above))[last] = value
    return made


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, (list, tuple)):
        for value in node:
            yield from _references(value)
    elif isinstance(node, str) and (found := REFERENCE.fullmatch(node)):
        yield found[1]
