"""The fixtures of scenarios that push to a registry: registry, contents, push, pull, conductor, download."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.plugin.markers import REGISTRY
from harness.plugin.scenario import Scenario
from harness.plugin.session import HilSession
from harness.scenarios.journal import note_setting

if TYPE_CHECKING:
    from harness.lab.push_bench import PushBench
    from harness.lab.registries import Registries
    from harness.plugin.downloading import Download
    from harness.plugin.pushing import ContentShelf, Push
    from harness.registry.engine import Engine
    from harness.registry.push_driver import Transfer
    from harness.scenarios.conductor import Conductor


@pytest.fixture(scope="session")
def hil_registries(
    hil: HilSession, hil_engine: Callable[[], Engine], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Registries]:
    """The registries of the lab; each is started when a scenario first asks for it."""
    from harness.lab.registries import Registries

    made: list[Path] = []

    def folder(name: str) -> Path:
        made.append(tmp_path_factory.mktemp(f"registry-{name}"))
        return made[-1]

    try:
        with Registries(hil.lab_entry, hil.host, folder, hil_engine) as registries:
            yield registries
    finally:
        for each in made:
            shutil.rmtree(each, ignore_errors=True)


@pytest.fixture(scope="session")
def hil_engine() -> Iterator[Callable[[], Engine]]:
    """Opens the Docker engine that clients push through, once; it ends with the run."""
    from harness.errors import HarnessError
    from harness.registry.engines.choose import open_engine

    opened: list[Engine] = []
    failed: list[HarnessError] = []
    with ExitStack() as ends:

        def engine() -> Engine:
            if failed:
                # Otherwise each scenario adds its frames to those before, and pytest reads them all.
                raise failed[0].with_traceback(None)
            if not opened:
                try:
                    made = open_engine()
                except HarnessError as error:
                    failed.append(error)
                    raise
                ends.callback(made.close)
                opened.append(made)
            return opened[0]

        yield engine


@pytest.fixture
def registry(request: pytest.FixtureRequest, hil: HilSession, hil_scenario: Scenario) -> PushBench:
    """The registry of this run, as it runs: `--hil-registry` chooses it, by default the lab's first.

    :raises NotApplicable: the lab has no registry. :raises BlockedError: something is missing for it.
    """
    named = registry_of(request.node, hil)
    registries: Registries = request.getfixturevalue("hil_registries")
    note_setting(hil.history, registry=named or "", through=hil.registry_name or "")
    bench = registries.bench(hil.registry_name or named)
    bench.registry.wait_ready()
    return bench


def registry_of(node: pytest.Item, hil: HilSession) -> str | None:
    """Return the registry that the marker ``hil_registry`` names. Asks the inventory alone.

    :raises NotApplicable: the lab has no registry. :raises BlockedError: it lacks the one that is named.
    """
    from harness.errors import BlockedError
    from harness.scenarios.prepare import NotApplicable

    if not hil.lab_entry.registries:
        raise NotApplicable(f"the lab {hil.lab_entry.name} has no registry")
    marker = node.get_closest_marker(REGISTRY)
    if marker is None:
        return None
    name, known = str(marker.args[0]), hil.lab_entry.registries
    if name not in known:
        raise BlockedError(
            f"The lab {hil.lab_entry.name} has no registry {name}.", hint=f"It has {', '.join(known)}."
        )
    return name


@pytest.fixture
def contents(request: pytest.FixtureRequest) -> ContentShelf:
    """Images by name (``tiny``, ``small``, ``shared``, ``index``), of this scenario alone."""
    from harness.plugin.pushing import ContentShelf

    return ContentShelf(request.node.nodeid)


@pytest.fixture
def push(
    request: pytest.FixtureRequest,
    hil: HilSession,
    registry: PushBench,
    contents: ContentShelf,
    hil_engine: Callable[[], Engine],
) -> Iterator[Push]:
    """Pushes an image: ``push("skopeo", "small", at="before:manifest-put", action="rotate-keys")``."""
    from harness.lab.defective import struck_by
    from harness.plugin.pushing import Push, repository_of

    struck = struck_by(hil.lab_entry.registry(hil.registry_name))
    pushing = Push(hil, registry, contents, repository_of(request.node.nodeid), hil_engine, struck)
    try:
        yield pushing
    finally:
        pushing.undo_all()


@pytest.fixture
def push_client(hil: HilSession, registry: PushBench) -> str:
    """The client that the lab pushes through: `verified-push`, unless its inventory says another."""
    return hil.lab_entry.registry(hil.registry_name).push_client


@pytest.fixture
def pull(push: Push) -> Callable[..., Transfer]:
    """Pulls what was pushed: ``pull("oci-pull", pushed)``."""
    return push.pull


@pytest.fixture
def conductor(registry: PushBench) -> Conductor:
    """A model of the conductor, which installs the registry's certificate; as before 2023-03, at once."""
    from harness.scenarios.conductor import Conductor

    return Conductor(lambda: registry.lab.rotate(("registry", "tokens")), defers=False)


@pytest.fixture
def download(push: Push) -> Download:
    """Downloads an application as the control plane does: ``download("cert-manager", {"a/b": "small"})``."""
    from harness.plugin.downloading import Download

    return Download(push)
