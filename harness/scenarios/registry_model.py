"""What documents say that a registry holds after pushes, deletions and restarts; and what a scenario does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

REPOSITORIES: Final = ("explored/one", "explored/two")
TAGS: Final = ("v1", "v2")
#: Names of :data:`harness.registry.recipes.RECIPES`: two of them share layers, one is an index.
CONTENTS: Final = ("tiny", "small", "shared", "index")
#: Clients that need no engine, and are right wherever nothing disturbs them.
CLIENTS: Final = ("oci-once", "oci-renew", "verified-push")
#: Where every push comes to, and where one comes to whose image is new to the repository.
ALWAYS: Final = ("before:ping", "before:blob-head", "before:manifest-put")
WHERE_NEW: Final = ("before:blob-post", "after:blob-post", "mid@256:blob-put", "after:blob-put")
ANSWERED: Final = ("after:manifest-put", "cut:manifest-put")
#: What a push outlives that renews its tokens, tries again and reads back (fact sheet, section 3).
OUTLIVED: Final = (
    *("restart", "restart-kill", "rotate-keys", "rotate-keys-tokens-first", "rotate-certificate"),
    *("reset", "cut", "stop:2", "answer-429", "answer-500", "answer-503"),
)
#: What it need not outlive, before the registry has seen the request: then it must say so.
REFUSING: Final = ("answer-403", "answer-404", "deny-token", "read-only", "rotate-keys-registry-only")
#: What may be done to layers that no manifest names yet.
COLLECTING: Final = ("collect-garbage", "collect-garbage-read-only")


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that is done to a registry. ``words``: what it takes, in the order of the act."""

    name: str
    words: tuple[str, ...] = ()
    #: It flashes no card.
    wear: int = 0

    def __str__(self) -> str:
        return " ".join((self.name, *self.words))


@dataclass(frozen=True, slots=True)
class Tag:
    """What is under a tag: ``content``; where not ``certain``, that or one of ``older`` (empty: nothing).

    ``result``: what the push that put it there is called in the scenario.
    """

    content: str
    result: str
    certain: bool = True
    older: frozenset[str] = frozenset()

    @property
    def possible(self) -> frozenset[str]:
        """The contents that may be there; empty text: none."""
        return frozenset({self.content}) if self.certain else self.older | {self.content}


class Plan(NamedTuple):
    """What an act is in a scenario file, and the registry after it. ``may_fail``: its push need not land."""

    steps: list[Any]
    after: RegistryModel
    may_fail: bool = False


Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RegistryModel:
    """A registry by the OCI distribution specification and its documents (fact sheet, sections 2 to 5).

    ``tags``: (repository, tag) -> what is there. ``tried``: (repository, content) that was pushed at all;
    ``held``: whose manifest is there, under a tag or without. ``stale``: garbage was collected beneath its
    caches, so that it says of blobs that it has them. ``lost``: contents whose manifests may have been
    collected so: until a restart it takes them anew with 201, and keeps none of their bytes (section 5).
    ``pushes``: how many there were. ``trusted``: the client that the lab pushes through.
    """

    trusted: str
    tags: Mapping[Place, Tag] = field(default_factory=dict)
    tried: frozenset[tuple[str, str]] = frozenset()
    held: frozenset[tuple[str, str]] = frozenset()
    stale: bool = False
    lost: frozenset[str] = frozenset()
    pushes: int = 0

    def plan(self, act: Act) -> Plan | None:
        """Return what an act is now; None where documents do not say what comes of it."""
        makers: Mapping[str, Callable[..., Plan | None]] = {
            "push": self._push,
            "push-disturbed": self._disturbed,
            "copy": self._copy,
            "delete": self._delete,
            "pull": self._pull,
            "disturb": self._between,
            "look-again": self._look_again,
        }
        return makers[act.name](*act.words)

    # -- pushes ---------------------------------------------------------------------------------------

    def _push(self, client: str, content: str, repository: str, tag: str) -> Plan | None:
        chosen = client or self.trusted
        if self.stale and chosen != self.trusted:
            return None  # it believes what the caches say
        if content in self.lost:
            return None  # it would poison the store, and what is under the tag would go, too
        step = self._step(chosen, content, repository, tag)
        return Plan([step], self._pushed(content, repository, tag, certain=True))

    def _disturbed(self, content: str, repository: str, tag: str, at: str, action: str) -> Plan | None:
        if at in WHERE_NEW and (repository, content) in self.tried:
            return None  # a push whose blobs are there does not come to it
        if action in COLLECTING and at != "before:manifest-put":
            return None
        may_fail = action in REFUSING or action == "collect-garbage-read-only"
        if may_fail and (not at.startswith("before") or at == "before:ping"):
            return None
        begun = self._collected() if action == "collect-garbage" else self
        if content in begun.lost:
            return None
        step = self._step(self.trusted, content, repository, tag) | {"at": at, "action": action}
        return Plan([step], begun._pushed(content, repository, tag, certain=not may_fail), may_fail)

    def _step(self, client: str, content: str, repository: str, tag: str) -> dict[str, Any]:
        where = {"repository": repository, "tag": tag, "before": True}
        return {"push": content, "client": client, **where, "as": self._next}

    @property
    def _next(self) -> str:
        return f"p{self.pushes + 1}"

    def _pushed(self, content: str, repository: str, tag: str, *, certain: bool) -> RegistryModel:
        was = self.tags.get((repository, tag))
        older = frozenset() if certain else (was.possible if was else frozenset({""}))
        return replace(
            self,
            tags={**self.tags, (repository, tag): Tag(content, self._next, certain, older)},
            tried=self.tried | {(repository, content)},
            held=self.held | ({(repository, content)} if certain else set()),
            pushes=self.pushes + 1,
        )

    def _copy(self, source: str, content: str, repository: str, tag: str) -> Plan | None:
        there = any(
            where == source and found.certain and found.content == content
            for (where, _), found in self.tags.items()
        )
        if not there or self.stale or content == "index":
            return None  # an index has manifests of its own, which are no blobs
        step = {"copy-image": content, "source": source, "repository": repository, "tag": tag}
        return Plan([step | {"as": self._next}], self._pushed(content, repository, tag, certain=True))

    # -- what is there --------------------------------------------------------------------------------

    def _delete(self, repository: str, tag: str) -> Plan | None:
        found = self.tags.get((repository, tag))
        if found is None or not found.certain or found.content == "index":
            return None
        own = {place: each for place, each in self.tags.items() if place[0] == repository}
        if any(not each.certain and found.content in each.possible for each in own.values()):
            return None
        gone = [place for place, each in own.items() if each.content == found.content]
        step = {"delete-image": [f"${self.tags[place].result}" for place in gone]}
        tags = {place: each for place, each in self.tags.items() if place not in gone}
        return Plan([step], replace(self, tags=tags, held=self.held - {(repository, found.content)}))

    def _pull(self, client: str, repository: str, tag: str) -> Plan | None:
        found = self.tags.get((repository, tag))
        if found is None or not found.certain:
            return None
        return Plan([{"pull": f"${found.result}", "client": client}], self)

    def _between(self, action: str) -> Plan:
        after = self._collected() if action == "collect-garbage" else self._restarted()
        return Plan([{"disturb-registry": action}], after)

    def _look_again(self) -> Plan | None:
        steps = self.look(restart=True)
        return Plan(steps, self._restarted()) if steps else None

    def _collected(self) -> RegistryModel:
        """Return the registry after garbage was collected while it runs."""
        held = {content for _, content in self.held}
        gone = {content for _, content in self.tried if content not in held}
        return replace(self, stale=True, lost=self.lost | gone)

    def _restarted(self) -> RegistryModel:
        """Return the registry with its caches empty."""
        return replace(self, stale=False, lost=frozenset())

    def look(self, *, restart: bool = False) -> list[Any]:
        """Return the step that reads every tag."""
        found = [f"${each.result}" for each in self.tags.values()]
        return [{"look-again": found, "restart": restart}] if found else []
