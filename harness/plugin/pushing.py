"""What scenarios do to a registry: push and pull through a client, with a fault at a point, all recorded."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.errors import ConfigurationError
from harness.judgement.records import Promise
from harness.plugin.scenario import step
from harness.registry.images import Content, Image, Index, IndexRecipe, make_image, make_index
from harness.registry.recipes import RECIPES, Recipe
from harness.scenarios.steps import is_step

if TYPE_CHECKING:
    from harness.faults.between_pushes import BetweenPushes
    from harness.faults.push_fault import PushFault
    from harness.lab.defect_table import Struck
    from harness.lab.push_bench import PushBench
    from harness.plugin.acting import Acting
    from harness.registry.clients.protocol import Destination, PushClient
    from harness.registry.engine import Engine
    from harness.registry.push_driver import PushDriver, Transfer


class ContentShelf(Mapping[str, Content]):
    """Images by name, each made once; no two scenarios share a blob, so that every push uploads all of it.

    :param seed: what makes these images differ from those of other scenarios.
    """

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self._made: dict[str, Content] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(RECIPES)

    def __len__(self) -> int:
        return len(RECIPES)

    def __getitem__(self, name: str) -> Content:
        """Return the image ``name``. :raises ConfigurationError: there is no such one."""
        if name not in RECIPES:
            near = difflib.get_close_matches(name, RECIPES, 1)
            raise ConfigurationError(
                f"No image for a registry is called {name!r}.",
                hint=f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(RECIPES)}.",
            )
        if name not in self._made:
            self._made[name] = made(RECIPES[name](self.seed))
        return self._made[name]


def made(recipe: Recipe) -> Content:
    """Return the image or the index of a recipe."""
    return make_index(recipe) if isinstance(recipe, IndexRecipe) else make_image(recipe)


def repository_of(nodeid: str) -> str:
    """Return a repository that no other scenario has, by the id of the scenario."""
    return f"hil/{hashlib.sha256(nodeid.encode()).hexdigest()[:12]}"


@contextmanager
def _prepared(client: PushClient, content: Content, destination: Destination) -> Iterator[None]:
    """Have ``client`` ready to push ``content``; what that made is removed."""
    try:
        client.prepare(content, destination)
        yield
    finally:
        client.forget(content, destination)


@dataclass
class Push:
    """The ``push`` fixture: pushes an image and records everything that is needed to judge it."""

    session: Acting
    bench: PushBench
    shelf: ContentShelf
    repository: str
    engine: Callable[[], Engine]
    #: What the registry does to a push that the scenario does not disturb; None: nothing.
    struck: Struck | None = None
    _faults: list[PushFault | BetweenPushes] = field(default_factory=list)
    _begun: int = 1
    _pushed: dict[int, tuple[PushDriver, str, str]] = field(default_factory=dict)

    @is_step(
        "push",
        of="push",
        content="content",
        client="push-client",
        tag="text",
        repository="text",
        at="push-point",
        action="push-action",
        promise="promise",
        before="flag",
    )
    def __call__(
        self,
        client: str,
        content: str | Recipe | Content,
        *,
        repository: str | None = None,
        tag: str = "v1",
        at: str | None = None,
        action: str | None = None,
        promise: Promise | None = None,
        before: bool = False,
        deadline: float = 120.0,
    ) -> Transfer:
        """Push ``content`` through ``client``; what lasts of a fault is undone before the truth is read.

        :param client: such as ``skopeo``. :param content: a name of the shelf, a recipe, or an image.
        :param repository: by default one of this scenario's own.
        :param at: the fault point, such as ``before:manifest-put``. :param action: what is done there.
        :param promise: by default that the image lands. :param before: read what is under the tag first.
        :param deadline: seconds.
        :raises BlockedError: what the client or the action needs is not here.
        :raises ConfigurationError: a name is wrong, or only one of ``at`` and ``action`` is given.
        """
        from harness.registry.push_driver import LANDS

        if (at is None) != (action is None):
            raise ConfigurationError(
                "A fault needs both a point and an action.",
                hint="Such as push('skopeo', 'small', at='before:manifest-put', action='rotate-keys').",
            )
        if at is None and self.struck is not None:
            at, action = self.struck.point, self.struck.action
        image = self.content(content)
        repository = self.repository if repository is None else repository
        opened = self.client(client)
        destination = self.bench.destination(repository, tag, client=client)
        driver = self.driver(client, opened)
        doing = f"push {destination.reference} by {client}" + (f", {action} {at}" if at else "")
        with step(self.session, self.bench.name, doing), _prepared(opened, image, destination):
            fault = None
            if at is not None and action is not None:
                fault = self._fault(at, action, destination)
            done = driver.push(
                image,
                destination,
                promise or LANDS,
                before=before,
                deadline=deadline,
                meanwhile=fault.strike if fault else None,
                settle=fault.settle if fault else None,
            )
        return self.note(done, driver, repository, tag)

    def note(self, done: Transfer, driver: PushDriver, repository: str, tag: str) -> Transfer:
        """Let :meth:`pull` and :meth:`look_again` know of a push by ``driver``; return it."""
        self._pushed[done.intent] = (driver, repository, tag)
        return done

    @is_step("pull", of="push", pushed="result", client="pull-client")
    def pull(self, client: str, pushed: Transfer, *, deadline: float = 120.0) -> Transfer:
        """Pull what was pushed through ``client``, and record what it says of it.

        :param pushed: what :meth:`__call__` returned. :raises BlockedError: what it needs is not here.
        """
        from harness.lab.push_bench import needs_engine

        if needs_engine(client):
            self.use_engine()
        driver, repository, tag = self._pushed[pushed.intent]
        source = self.bench.destination(repository, tag, client=client)
        with step(self.session, self.bench.name, f"pull {source.reference} by {client}"):
            return driver.pull(self.bench.pull_client(client), source, pushed.expected, deadline=deadline)

    @is_step("look-again", of="push", pushed="results", restart="flag")
    def look_again(self, *pushed: Transfer, restart: bool = True) -> None:
        """Read once more what is true of images that were pushed, after a restart of the registry.

        :param restart: False: without one. :raises BlockedError: the registry cannot be restarted.
        """
        if restart:
            self.bench.registry.restart()
        for each in pushed:
            driver, _, _ = self._pushed[each.intent]
            driver.look_again([each], "after-restart" if restart else "later")

    @is_step("disturb-registry", of="push", action="push-action")
    def disturb(self, action: str) -> None:
        """Do something to the registry between pushes, such as `restart`; what lasts is undone at the end.

        :raises ConfigurationError: there is no such action, or it can only be done to a push.
        :raises BlockedError: something is missing for it.
        """
        from harness.faults.between_pushes import BetweenPushes
        from harness.faults.registry_actions import registry_action

        fault = BetweenPushes(self.bench, self.session.history, registry_action(action))
        self._faults.append(fault)
        with step(self.session, self.bench.name, f"{action} between pushes"):
            fault.strike()

    @is_step("new-repository", of="push")
    def new_repository(self) -> None:
        """Go on in another repository, with images of which no blob was pushed before."""
        self._begun += 1
        self.shelf = ContentShelf(f"{self.shelf.seed} {self._begun}")
        self.repository = repository_of(f"{self.repository} {self._begun}")

    @is_step("restore-registry", of="push")
    def undo_all(self) -> None:
        """Undo every fault, newest first.

        :raises HarnessError: the last that could not be undone.
        """
        while self._faults:
            try:
                self._faults[-1].undo()
            finally:
                self._faults.pop()

    def content(self, content: str | Recipe | Content) -> Content:
        """Return the image that ``content`` is, or is the name of. :raises ConfigurationError: it is none."""
        if isinstance(content, str):
            return self.shelf[content]
        return content if isinstance(content, Image | Index) else made(content)

    def client(self, name: str) -> PushClient:
        """Return the client ``name``; raises as :meth:`__call__`."""
        from harness.lab.push_bench import needs_engine

        if needs_engine(name):
            self.use_engine()
        return self.bench.push_client(name)

    def use_engine(self) -> Engine:
        """Return the engine, which checks the registry's certificate. :raises BlockedError: none runs."""
        if self.bench.engine is None:
            self.bench.use_engine(self.engine())
        assert self.bench.engine is not None
        return self.bench.engine

    def driver(self, name: str, client: PushClient) -> PushDriver:
        """Return what records the pushes of ``client``, which is called ``name``."""
        from harness.lab.push_bench import needs_engine
        from harness.registry.push_driver import PushDriver

        through_engine = needs_engine(name)
        return PushDriver(
            self.session.history,
            client,
            self.bench.probe,
            compared_by="config" if through_engine else "digest",
            engine=self.bench.engine if through_engine else None,
            service=self.bench.registry,
            registry=self.bench.name,
        )

    def _fault(self, at: str, action: str, destination: Destination) -> PushFault:
        from harness.faults.push_fault import PushFault
        from harness.faults.registry_actions import registry_action
        from harness.faults.registry_points import FaultPoint

        fault = PushFault(self.bench, self.session.history, registry_action(action), FaultPoint.parse(at))
        self._faults.append(fault)
        fault.arm(destination.reference)
        return fault
