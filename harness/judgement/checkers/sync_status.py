"""Is what dcmanager says of a subcloud's firmware (in-sync, out-of-sync, unknown) true of all its cards?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from harness.judgement.checkers.standing import Standing, standing_of
from harness.judgement.cloud_story import CloudLook, CloudStory
from harness.judgement.grouping import word
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Claim
from harness.judgement.system_story import moment_of, shown
from harness.judgement.values import Unknown

REPORTER: Final = "dcmanager-sync"
#: Lab seconds within which an audit that is asked for follows: two rounds of its loop (section 5.6). It is
#: asked for by a change of an image, the end of a strategy, and where a subcloud comes to be asked again.
FORCED_SECONDS: Final = 80.0
#: Lab seconds from one audit that nobody asked for to the next: four passes of 900 s, a round (section 5.6).
PERIODIC_SECONDS: Final = 3640.0
#: What makes the controller ask for an audit (section 5.1).
_IMAGE_CHANGES: Final = ("image-upload", "image-apply", "image-remove", "image-delete")
#: States of a step or a strategy that is over (section 5.4).
OVER: Final = ("complete", "failed", "aborted")


@dataclass(slots=True)
class _Watch:
    """What was seen of one subcloud up to a look; times are None where it was not so.

    ``good_since``: its cards hold all; ``bad_seen``: they did not, since it is said to be out-of-sync.
    ``unknown_since``: its status is unknown. ``forced``: an audit of it was last asked for. ``asked``,
    ``over``: it was asked at all, its step was over in the last look.
    """

    good_since: float | None = None
    bad_seen: bool = False
    unknown_since: float | None = None
    forced: float | None = None
    asked: bool | None = None
    over: bool | None = None

    def see(self, look: CloudLook, said: Any, step: str, changed: float | None, good: Any) -> None:
        """Take what the next look shows. ``changed``: when an image was last changed before it."""
        now = look.own.moment
        asked, over = _is_asked(said), step in OVER
        events = [self.forced] if self.forced is not None else []
        if changed is not None:
            events.append(changed)
        if (self.asked is False and asked) or (self.over is False and over and step):
            events.append(now)
        self.forced = max(events, default=None)
        self.asked, self.over = asked, over
        if good is True:
            self.good_since = now if self.good_since is None else self.good_since
        else:
            self.good_since = None
        told_bad = said.get("firmware_sync_status") == "out-of-sync"
        self.bad_seen = told_bad and (self.bad_seen or good is False)
        if said.get("firmware_sync_status") != "unknown":
            self.unknown_since = None
        elif self.unknown_since is None:
            self.unknown_since = now


def check_sync_status(cloud: CloudStory) -> Iterator[Verdict]:
    """Yield a verdict on the firmware status of each subcloud in each look."""
    watches: dict[str, _Watch] = {}
    made = cloud.changes(*_IMAGE_CHANGES, unanswered=True)
    changes, seqs = [moment_of(change) for change in made], [change.seq for change in made]
    before = 0
    for look in cloud.looks:
        while before < len(seqs) and seqs[before] < look.own.seq:
            before += 1
        steps = look.said("step")
        for name, claim in look.said("subcloud").items():
            if isinstance(claim.statement.get("firmware_sync_status", Unknown("not asked")), Unknown):
                continue
            standing = standing_of(cloud, look, name)
            step = word(steps[name].statement, "state") if name in steps else ""
            watch = watches.setdefault(name, _Watch())
            watch.see(look, claim.statement, step, changes[before - 1] if before else None, standing.good)
            yield _verdict(look, claim, standing, watch, step)


def _is_asked(said: Any) -> bool:
    """Whether a subcloud is one that the controller asks: managed and online."""
    return bool(said.get("management") == "managed" and said.get("availability") == "online")


def _verdict(look: CloudLook, claim: Claim, standing: Standing, watch: _Watch, step: str) -> Verdict:
    status = claim.statement["firmware_sync_status"]
    if not watch.asked:
        kind, why = _unasked(status, standing)
    elif status == "in-sync":
        kind, why = _held(standing, good=VerdictKind.MATCH, bad=VerdictKind.FALSE_SUCCESS), ""
    elif status == "out-of-sync":
        kind, why = _held(standing, good=VerdictKind.FALSE_FAILURE, bad=VerdictKind.MATCH), ""
        if kind is VerdictKind.FALSE_FAILURE:
            kind, why = _late(look.own.moment, watch, step)
    elif status == "unknown":
        kind, why = _still_unknown(look.own.moment, watch)
    else:
        kind, why = VerdictKind.MISREPORT, f"there is no status {status!r}; "
    name = claim.subject.name.rpartition("/")[2]
    return Verdict(
        kind,
        "sync-status",
        REPORTER,
        claim.subject,
        f"the firmware of {name} is {shown(status)}",
        why + standing.truth,
        standing.how_read,
        claim.intent,
        (claim.seq, *standing.records),
    )


def _held(standing: Standing, *, good: VerdictKind, bad: VerdictKind) -> VerdictKind:
    if isinstance(standing.good, Unknown):
        return VerdictKind.UNVERIFIABLE
    return good if standing.good else bad


def _unasked(status: str, standing: Standing) -> tuple[VerdictKind, str]:
    """A subcloud that is not managed, or not online, is asked by nobody: its status is unknown."""
    why = "nobody asks a subcloud that is not managed and online; "
    if status == "unknown":
        return VerdictKind.MATCH, why
    if status == "in-sync" and standing.good is False:
        return VerdictKind.FALSE_SUCCESS, why
    return VerdictKind.UNKNOWN_AS_VALUE, why


def _late(now: float, watch: _Watch, step: str) -> tuple[VerdictKind, str]:
    """Out-of-sync, and the cards hold all: right until the next audit has had its time."""
    if step and step not in OVER:
        return VerdictKind.MATCH, "its step is not over yet; "
    assert watch.good_since is not None
    forced = watch.forced is not None and watch.forced >= watch.good_since
    since = watch.forced if forced and watch.forced is not None else watch.good_since
    bound = FORCED_SECONDS if forced else PERIODIC_SECONDS
    lag = f"for {now - since:.0f} s, and an audit is due within {bound:.0f} s: "
    if now - since > bound:
        return (VerdictKind.STALE if watch.bad_seen else VerdictKind.FALSE_FAILURE), lag
    return (VerdictKind.MATCH if watch.bad_seen else VerdictKind.UNVERIFIABLE), lag


def _still_unknown(now: float, watch: _Watch) -> tuple[VerdictKind, str]:
    """Unknown is never in-sync; it is right until the audit that was asked for has had its time, and nobody
    waits any more after one that nobody asked for."""
    assert watch.unknown_since is not None
    since = max(watch.unknown_since, watch.forced or watch.unknown_since)
    lag = f"unknown for {now - since:.0f} s, and an audit is due within {FORCED_SECONDS:.0f} s: "
    if now - since > PERIODIC_SECONDS:
        return VerdictKind.LOST, lag
    return (VerdictKind.STALE if now - since > FORCED_SECONDS else VerdictKind.MATCH), lag
