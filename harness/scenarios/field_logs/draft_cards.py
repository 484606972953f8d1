"""Drafts scenarios about cards: what was flashed, what the tool and the kernel's log said, what was reset."""

from __future__ import annotations

from typing import Any, Final

from harness.scenarios.field_logs.acts import acts_of
from harness.scenarios.field_logs.contradictions import contradictions
from harness.scenarios.field_logs.draft import OPEN, Draft, cited
from harness.scenarios.field_logs.events import Command, Event, Happened, Told
from harness.scenarios.field_logs.reading import FieldLog
from harness.scenarios.field_logs.stand_ins import Images

#: The card's code for a root entry hash that is not the programmed one (n3000.md): what is unsigned on a card
#: with a root key, or signed by another root.
_WRONG_ROOT: Final = "0x11"
#: Phases at which a fault can be bound.
_PHASES: Final = ("preparing", "transferring", "programming")


def draft_cards(log: FieldLog, images: Images, draft: Draft) -> None:
    """Draft each flash with what is promised of it, the resets, and what is expected."""
    draft.given = {"card": {"root": _root(log, draft)}}
    flashes = [each for each in log.events if _is_flash(each)]
    resets: list[Event] = [act.command for act in acts_of(log) if act.kind == "reset"]
    resets = resets or [told for told in log.of(Told) if told.claim.reporter == "rsu"]
    order = [event for event in log.events if event in flashes or event in resets]
    for event in order:
        if event in resets:
            draft.add("reset", cited(event))
        else:
            _flash(log, images, draft, event, activate=not resets)
    draft.open.append(
        "on which card it was: without `devices` under `given` it is run on each; `hil run --device`"
    )
    draft.state(contradictions(log))


def _is_flash(event: Event) -> bool:
    """Whether an event is of an update: what the tool stated, or that it did not come to state anything."""
    if isinstance(event, Happened):
        return event.what == "unended"
    return isinstance(event, Told) and event.claim.reporter == "fpgasupdate"


def _root(log: FieldLog, draft: Draft) -> str:
    """Return which root key the card has, by what is said of it."""
    for told in log.of(Told):
        root = told.claim.statement.get("sr_root")
        if isinstance(root, str):
            draft.given_comments.append(f"Its root entry hash: {cited(told)}.")
            if root:
                draft.given_comments.append(f"{OPEN}: whose key it is; root A stands for it.")
            return "A" if root else "none"
    for event in log.events:
        keyed = isinstance(event, Happened) and event.what == "root-key"
        refused = isinstance(event, Told) and event.claim.statement.get("auth_code") == _WRONG_ROOT
        if keyed or refused:
            why = "it is said" if keyed else f"code {_WRONG_ROOT} is given by a card that has one"
            draft.given_comments.append(
                f"The card has a root key: {why} ({cited(event)}). {OPEN}: which one."
            )
            return "A"
    draft.given_comments.append(f"{OPEN}: whether the card has a root key; none is assumed.")
    return "none"


def _flash(log: FieldLog, images: Images, draft: Draft, event: Event, *, activate: bool) -> None:
    statement = event.claim.statement if isinstance(event, Told) else {}
    file = str(statement.get("image") or (event.detail if isinstance(event, Happened) else ""))
    logged = _code(log, event)
    code = str(logged.claim.statement["auth_code"]) if logged is not None else ""
    chosen = images.flashed(file or ("unsigned" if code == _WRONG_ROOT else ""))
    comments = [cited(event), *chosen.comments]
    done = statement.get("result") == "done"
    promise = "lands" if done and not code else "unchanged"
    if code:
        promise = f"unchanged {code}"
        comments.append(f"The card refused it: {cited(logged)}." if logged is not None else "")
    phase = str(statement.get("phase", ""))
    if statement.get("result") == "interrupted" and phase in _PHASES:
        draft.add({"fault": "sigint", "at": phase}, f"The tool was interrupted: {cited(event)}.")
    elif isinstance(event, Happened):
        comments.append(f"{OPEN}: how it ended; the tool's output breaks off. That it lands is assumed.")
        promise = "lands"
    elif not done and not code:
        error = str(statement.get("error", ""))
        comments.append(f"{OPEN}: why it failed ({error}); nothing is disturbed here, so it may land.")
    step: dict[str, Any] = {"flash": chosen.recipe, "promise": promise}
    draft.add(step if activate else step | {"activate": False}, *comments)


def _code(log: FieldLog, event: Event) -> Told | None:
    """Return the kernel's code for an update: the first one behind it, before the next update."""
    began = False
    for each in log.events:
        if each is event:
            began = True
        elif began and isinstance(each, Told) and each.claim.reporter == "kernel-log":
            code = str(each.claim.statement.get("auth_code", "0x0"))
            return each if int(code, 16) else None
        elif began and (_is_flash(each) or (isinstance(each, Command) and each.words[0] == "fpgasupdate")):
            return None
    return None
