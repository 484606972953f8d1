"""Drafts scenarios about images that are brought into a registry, disturbed where the log has it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from harness.errors import ConfigurationError
from harness.judgement.model import Outcome, VerdictKind
from harness.registry.log_claims import REFUSED
from harness.registry.reference import parse_reference
from harness.scenarios.field_logs.acts import acts_of
from harness.scenarios.field_logs.contradictions import contradictions
from harness.scenarios.field_logs.draft import OPEN, Draft, cited, safe
from harness.scenarios.field_logs.events import Event, Happened, Told
from harness.scenarios.field_logs.reading import FieldLog

_DOWNLOADER: Final = "sysinv-download"
_TAG: Final = "v1"
#: Stands for a client that nobody names: it tells what the engine says.
_CLIENT: Final = "docker-stream"
_STATES: Final = ("restore-requested", "applying", "updating", "uploading")
#: Images at a time, as sysinv downloads them (fact sheet of StarlingX, section 7.1).
_AT_ONCE: Final = 5
_REGISTRY: Final = "docker-distribution"


@dataclass(slots=True)
class _Image:
    """An image that is brought in: the first that is read of it, and what is said of it at last."""

    repository: str
    tag: str = ""
    events: list[Event] | None = None
    done: Told | None = None
    refused: Told | None = None
    over: Happened | None = None


def draft_pushes(log: FieldLog, draft: Draft) -> None:
    """Draft the steps of a download, or of pushes by command, and what is expected."""
    images = _images(log)
    if _spoken(images):
        _download(log, draft, images)
    elif any(act.kind == "push" for act in acts_of(log)):
        _pushed(log, draft)
    else:
        _refused(draft, images)
    draft.state(contradictions(log))


def _images(log: FieldLog) -> dict[str, _Image]:
    """Return the images that sysinv brings in, and those that a registry refused meanwhile, by repository."""
    found: dict[str, _Image] = {}
    for event in log.events:
        name = _named(event)
        if not name:
            continue
        repository, tag = _parts(name)
        image = found.setdefault(repository, _Image(repository, events=[]))
        image.tag = image.tag or tag
        if image.events is not None and len(image.events) < 3:
            image.events.append(event)
        if isinstance(event, Happened) and event.what == "push-over":
            image.over = event
        elif isinstance(event, Told) and event.claim.reporter == "log:sysinv":
            image.done = event
        elif isinstance(event, Told) and event.claim.statement.get("error") == REFUSED:
            image.refused = event
    return {name: image for name, image in found.items() if name}


def _spoken(found: dict[str, _Image]) -> bool:
    """Whether sysinv speaks of any of these images."""
    return any(
        isinstance(event, Happened) or (isinstance(event, Told) and event.claim.reporter == "log:sysinv")
        for image in found.values()
        for event in image.events or ()
    )


def _named(event: Event) -> str:
    if isinstance(event, Happened) and event.what in ("download-started", "push-over"):
        return event.subject
    if isinstance(event, Told) and event.claim.subject.kind == "registry-image":
        return event.claim.subject.name
    return ""


def _parts(name: str) -> tuple[str, str]:
    """Return an image's repository, without a registry, and its tag where one is stated.

    Both are empty for what names no image, as an engine's words do not.
    """
    stated = ":" in name.rpartition("/")[2]
    try:
        reference = parse_reference(name)
    except ConfigurationError:
        return "", ""
    return reference.repository, reference.tag if stated else ""


def _download(log: FieldLog, draft: Draft, images: dict[str, _Image]) -> None:
    disturbed = [e for e in log.of(Happened) if e.what in ("restart", "restarted")]
    certificate = next((e for e in log.of(Happened) if e.what == "certificate"), None)
    app = _application(log, draft)
    tags = Counter(image.tag for image in images.values() if image.tag)
    tag = tags.most_common(1)[0][0] if tags else _TAG
    held = [name for name, image in images.items() if _was_open(image, disturbed)]
    comments = [f"{name}: {cited(*(image.events or ()))}" for name, image in images.items()]
    comments += _open_tags(images, tag)
    step: dict[str, Any] = {
        "download": safe(app),
        "tag": safe(tag),
        "images": [safe(name) for name in images],
    }
    if held and (disturbed or certificate):
        step |= {
            "hold": [safe(name) for name in held],
            "meanwhile": [_disturbance(certificate, disturbed, comments)],
        }
        comments.append("Held until the others are done: those whose push was not over then.")
    elif held:
        comments.append(f"{OPEN}: what happened to the registry meanwhile; nothing is disturbed here.")
    if len(images) > _AT_ONCE:
        comments.append(f"sysinv brings in {_AT_ONCE} at a time; the files have {len(images)}.")
    step["as"] = "images"
    draft.add(step, *comments)
    _checks(draft, images, held, disturbed=bool(step.get("hold")))


def _application(log: FieldLog, draft: Draft) -> str:
    """Return whose images they are; a step says in which state it is, where that is said."""
    done = [t for t in log.of(Told) if "/application/" in t.claim.subject.name]
    states = [e for e in log.of(Happened) if e.what == "application"]
    name = done[0].claim.subject.name.rpartition("/")[2] if done else states[0].subject if states else ""
    if not name:
        draft.open.append("of which application the images are; `an-application` stands for it")
        name = "an-application"
    for event in states:
        if event.subject == name and event.detail in _STATES:
            draft.add({"application": safe(name), "state": event.detail}, cited(event))
            break
    return name


def _was_open(image: _Image, disturbed: list[Happened]) -> bool:
    """Whether a push was not over when the registry was disturbed, as far as that is said."""
    if image.refused is not None:
        return True
    ended = image.over or image.done
    began = next((e.time for e in disturbed if e.time is not None), None)
    return ended is not None and ended.time is not None and began is not None and ended.time > began


def _disturbance(certificate: Happened | None, disturbed: list[Happened], comments: list[str]) -> Any:
    if certificate is not None:
        comments.append(
            f"Meanwhile the registry's certificate was installed: {cited(certificate, *disturbed[:4])}."
        )
        return "install-certificate"
    services = {event.subject for event in disturbed}
    comments.append(f"Meanwhile there were restarts: {cited(*disturbed[:4])}.")
    if services - {_REGISTRY} and _REGISTRY in services:
        comments.append(
            f"{OPEN}: whether keys changed with them; both services were restarted, so that is assumed."
        )
        return "install-certificate"
    return {"disturb-registry": "restart"}


def _open_tags(images: dict[str, _Image], tag: str) -> list[str]:
    told = []
    for name, image in images.items():
        if not image.tag:
            told.append(f"{OPEN}: the tag of {name}; {tag} is assumed.")
        elif image.tag != tag:
            told.append(f"The tag of {name} was {image.tag}; one download has one tag.")
    return told


def _checks(draft: Draft, images: dict[str, _Image], held: list[str], *, disturbed: bool) -> None:
    """State of each image what the log's own words come to."""
    lost = [name for name in held if images[name].refused is not None]
    kept = [n for n, image in images.items() if n not in held and image.done is not None]
    true, false = VerdictKind.MATCH.value, VerdictKind.FALSE_SUCCESS.value
    if kept and disturbed:
        step: dict[str, Any] = {"check": "$images", "only": [safe(name) for name in kept]}
        step |= {"truth": "COMPLETE", "verdicts": {_DOWNLOADER: true, "log:sysinv": true}}
        draft.add(step, "Said to be done, and nothing in the files speaks against it.")
    if lost and disturbed:
        claims = [t for name in lost for t in (images[name].done, images[name].refused) if t is not None]
        draft.add(
            {
                "check": "$images",
                "only": [safe(name) for name in lost],
                "truth": "ABSENT",
                "verdicts": {_DOWNLOADER: false, "log:sysinv": false, "log:registry": true},
                "says": {"log:registry": REFUSED},
            },
            f"Refused by the registry, and no later push of them: {cited(*claims)}.",
        )
        draft.outcome = Outcome.FAILED
        draft.verdicts |= {_DOWNLOADER: false, "log:sysinv": false}
        draft.expect_comments.append(
            f"{_DOWNLOADER} is {false}: what sysinv logs is what its downloader was told by its client."
        )
    silent = [name for name in lost if images[name].done is None]
    if silent:
        draft.open.append(f"what sysinv says of {', '.join(silent)}; it is held to be as with the others")


def _pushed(log: FieldLog, draft: Draft) -> None:
    """Draft pushes that were made by command; what is pushed is small, whatever it was."""
    disturbed = [e for e in log.of(Happened) if e.what in ("restart", "restarted", "certificate")]
    for act in (each for each in acts_of(log) if each.kind == "push"):
        repository, tag = _parts(act.words[0]) if act.words else ("", "")
        client = act.options.get("client", "docker-cli")
        step: dict[str, Any] = {"push": "small", "client": client}
        step |= {"tag": safe(tag)} if tag else {}
        comments = [f"{cited(act.command)}: {act.command.text}"]
        comments.append(f"{OPEN}: what {repository or 'it'} consists of; `small` stands for it.")
        later = [e for e in disturbed if (e.time or 0.0, e.place.line) >= (act.command.time or 0.0, 0)]
        if later:
            action = "rotate-keys" if any(e.what == "certificate" for e in later) else "restart"
            step |= {"at": "before:blob-post", "action": action}
            comments.append(f"Meanwhile: {cited(*later[:3])}. {OPEN}: at which point of the push.")
        draft.add(step, *comments)


def _refused(draft: Draft, images: dict[str, _Image]) -> None:
    """Draft the pushes that a registry tells of alone: it refused their tokens."""
    for name, image in images.items():
        if image.refused is None:
            continue
        draft.add(
            {
                "push": "small",
                "client": _CLIENT,
                "repository": safe(name),
                "at": "before:blob-post",
                "action": "rotate-keys",
            },
            f"{cited(image.refused)}: the registry takes its token no more.",
            f"{OPEN}: the client, what was pushed, and why; {_CLIENT}, `small` and new keys are assumed.",
        )
        draft.outcome = Outcome.FAILED
