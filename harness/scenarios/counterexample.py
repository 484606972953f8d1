"""Steps of an exploration of cards as a scenario file has them: what is done, and what documents promise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from harness.scenarios.card_model import EARLY, Step

SOURCE: Final = (
    "Intel FPGA PAC N3000 Security User Guide (683519): policy; codes: authentication result register, as in "
    "DPDK drivers/raw/ifpga"
)
_RESETS: Final = ("reset", "power-cycle")
#: What takes the host away in the middle of an update: its tool says nothing any more.
SILENCING: Final = ("cut", "reboot")
#: Characters of what was found that a scenario repeats.
_LONGEST: Final = 240
#: Runs where a page was lost.
_FACTORY: Final = "the factory image"
#: Lab seconds after which a card takes another update where its host went away in the middle of one.
_HOST_GIVEN_UP: Final = 300
#: The phase of an update in which a second updater wants to begin.
_BEGUN: Final = "preparing"
#: Phases that no fault can be bound to by their own name -> the one that the tool shows.
_SHOWN_AS: Final = {"keys": "programming"}


def scenario_of(steps: Sequence[Step], reason: str, probes: Sequence[Step] = ()) -> dict[str, Any]:
    """Return the scenario that does ``steps`` and states what documents promise of each.

    A power cycle is written as a reset. ``probes``: updates that show what keys hold at the end.
    """
    done = [each for step in steps for each in steps_of(step)]
    done += [] if steps[-1].name in _RESETS else ["reset"]
    for probe in probes:
        done += [*steps_of(probe), "reset"]
    silenced = any(step.name in SILENCING for step in steps)
    expect: dict[str, Any] = {} if can_be_told((*steps, *probes)) else {"outcome": "UNKNOWN"}
    verdicts = {"fpgasupdate": "LOST"} if silenced else {}
    verdicts |= {"inventory": "STALE"} if any(step.name == "move" for step in steps) else {}
    expect |= {"verdicts": verdicts} if verdicts else {}
    return {
        "about": about(steps, reason),
        "source": SOURCE,
        "given": {"card": {"root": "none"}, **({"needs": ["power"]} if silenced else {})},
        "steps": done,
        "expect": expect,
    }


def about(steps: Sequence[object], reason: str) -> str:
    """Return what a scenario with these steps is about; a long ``reason`` is cut."""
    said = reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]}..."
    return f"Found by exploration, and shrunk to {len(steps)} step{'s' * (len(steps) != 1)}: {said}"


def can_be_told(steps: Sequence[Step]) -> bool:
    """Return whether a card shows of each of its user images what became of it: by what runs after a reset.

    The rules are those of docs/verdicts.md. It does not show that where the image ran already, or was tried
    once more before the reset, or another one was written over it, or a page was lost after it.
    """
    page = running = _FACTORY
    tried: list[tuple[Step, str]] = []
    for step in (*steps, Step("reset")):
        if _of_user(step):
            tried.append((step, running))
        if _loses_the_page(step) or _lands(step):
            page = _FACTORY if _loses_the_page(step) else step.image
        if step.name == "cut":
            running = page
        if step.name in _RESETS:
            if not all(_is_told(tried, at, page) for at in range(len(tried))):
                return False
            running, tried = page, []
    return True


def _is_told(tried: Sequence[tuple[Step, str]], at: int, page: str) -> bool:
    """Return whether ``page``, run after a reset, shows what became of an image that was tried before it.

    :param tried: what was between two resets, each with what ran before.
    """
    step, ran = tried[at]
    later = [each for each, _ in tried[at + 1 :]]
    if _loses_the_page(step):
        return page == _FACTORY
    if page == step.image:
        others = (each for number, (each, _) in enumerate(tried) if number != at)
        return ran != page and all(each.image != page for each in others)
    return all(each.image != page and not _loses_the_page(each) for each in later)


def _loses_the_page(step: Step) -> bool:
    return _of_user(step) and step.name == "cut" and step.phase == "copying"


def _of_user(step: Step) -> bool:
    return bool(step.image) and not step.image.startswith(("root-key", "cancel", "bmc"))


def _lands(step: Step) -> bool:
    """Return whether a user image takes its place."""
    stopped = step.name in ("cut", "cancel") or (step.name == "reboot" and step.phase in EARLY)
    return _of_user(step) and not (step.code or stopped)


def steps_of(step: Step) -> Iterator[Any]:
    """Yield what a step of an exploration is in a scenario file."""
    if step.name in _RESETS:
        yield "reset"
    elif step.name == "move":
        yield {"fault": "move", "at": "start"}
    else:
        yield from _update(step)


def _update(step: Step) -> Iterator[dict[str, Any]]:
    promise = f"unchanged 0x{step.code:02X}" if step.code else "lands"
    if step.name == "cut":
        yield {"fault": "power-cut", "at": _SHOWN_AS.get(step.phase, step.phase)}
        promise = "factory" if step.phase == "copying" else "unchanged"
    elif step.name == "cancel":
        yield {"fault": "cancel", "at": step.phase}
        promise = "unchanged"
    elif step.name == "reboot":
        yield {"fault": "reboot", "at": _SHOWN_AS.get(step.phase, step.phase)}
        promise = "unchanged" if step.phase in EARLY else promise
    elif step.name == "second":
        yield {"second-updater": step.word, "at": _BEGUN}
    yield {"flash": step.image, "promise": promise, "activate": False}
    if step.name == "reboot":
        yield {"wait": _HOST_GIVEN_UP}
