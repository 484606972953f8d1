"""The registries of one lab, each started (emulated) or reached (real) on first use, ended with the lab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import BlockedError, HarnessError

if TYPE_CHECKING:
    from harness.faults.own_store import OwnStore
    from harness.hosts.protocol import Host
    from harness.inventory.model import Lab
    from harness.inventory.registries import EmulatedRegistry, Registry
    from harness.lab.push_bench import PushBench
    from harness.registry.assembled import RegistryMaker
    from harness.registry.engine import Engine

#: The registry of the same generation as Debian's, as its project makes it.
_IMAGE = "registry:2"
#: Bytes of a store on a file system of its own: all that the scenarios of one plan push fits in it.
_OWN_STORE = 256 << 20


class Registries:
    """Benches by the name of their registry; a context manager that ends them.

    One that could not be started or reached is not tried again: the same error is raised at once.

    :param lab: of the inventory. :param host: returns the driver of a host of it, by name.
    :param folder: where a registry of this name keeps everything; a temporary one by default.
    :param engine: opens the Docker engine for registries in containers; its opener closes it.
    """

    def __init__(
        self,
        lab: Lab,
        host: Callable[[str], Host],
        folder: Callable[[str], Path] | None = None,
        engine: Callable[[], Engine] | None = None,
    ) -> None:
        self._lab = lab
        self._host = host
        self._folder = folder
        self._engine = engine or _no_engine
        self._benches: dict[str, PushBench] = {}
        self._failed: dict[str, HarnessError] = {}

    def __enter__(self) -> Registries:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def bench(self, name: str | None = None) -> PushBench:
        """Return the started bench of the registry ``name``; of the first one where it is None.

        :raises ConfigurationError: the lab has no such registry.
        :raises InfrastructureError: it does not start. :raises BlockedError: something is missing for it.
        """
        entry = self._lab.registry(name)
        if entry.name in self._failed:
            # Otherwise each scenario adds its frames to those before, and pytest reads them all.
            raise self._failed[entry.name].with_traceback(None)
        if entry.name not in self._benches:
            try:
                bench = self._made(entry)
                bench.start()
            except HarnessError as error:
                self._failed[entry.name] = error
                raise
            self._benches[entry.name] = bench
        return self._benches[entry.name]

    def _made(self, entry: Registry) -> PushBench:
        folder = self._folder(entry.name) if self._folder else None
        if entry.emulated is not None:
            return _emulated(entry, entry.emulated, folder, self._engine)
        from harness.lab.real_registry import RealRegistryBench

        host = self._host(entry.host) if entry.host is not None else None
        return RealRegistryBench(entry, host, folder)

    def close(self) -> None:
        """End all of them, the last first; may be called twice."""
        while self._benches:
            self._benches.popitem()[1].close()


def emulated_bench(entry: Registry) -> PushBench:
    """Return the bench of an emulated registry alone, not started, in a temporary folder.

    :raises BlockedError: its program is not to be had, or the registry is real.
    """
    if entry.emulated is None:
        raise BlockedError(
            f"The registry {entry.name} is real, and is not explored.", hint="Explore an emulated one."
        )
    return _emulated(entry, entry.emulated, None, _no_engine)


def _no_engine() -> Engine:
    raise BlockedError("No Docker engine is opened here.", hint="Let the registry run as a process.")


def _emulated(
    registry: Registry, entry: EmulatedRegistry, folder: Path | None, engine: Callable[[], Engine]
) -> PushBench:
    from harness.lab.registry_bench import RegistryBench
    from harness.registry.configuration import RegistrySettings

    make = _maker(entry.service, engine)
    settings = RegistrySettings(cache=entry.cache, delete=entry.delete, drain=entry.drain)
    return RegistryBench(
        folder,
        settings=settings,
        tls=entry.tls,
        guarded=entry.tokens,
        make=make,
        name=registry.name,
        own_store=_own_store(registry),
    )


def _own_store(registry: Registry) -> OwnStore | None:
    """Return a store on a file system of its own, where a defect of the registry needs that.

    :raises BlockedError: there can be none here.
    """
    from harness.faults.own_store import OwnStore
    from harness.faults.registry_actions import registry_action
    from harness.lab.defective import struck_by

    struck = struck_by(registry)
    needed = struck is not None and registry_action(struck.action).needs_own_store
    return OwnStore(_OWN_STORE) if needed else None


def _maker(service: str, engine: Callable[[], Engine]) -> RegistryMaker:
    """Return what makes the registry: of Debian's program, or else of the project's image.

    :raises BlockedError: neither is to be had; the message has the command that helps.
    """
    from harness.registry.assembled import as_process
    from harness.registry.process import find_registry

    try:
        program = find_registry()
    except BlockedError as missing:
        return _of_the_project(engine, missing)
    if service == "process":
        return as_process(program)
    from harness.registry.container import ContainerRegistry

    opened = engine()
    return lambda folder, settings: ContainerRegistry(opened, folder, settings, program=program)


def _of_the_project(engine: Callable[[], Engine], missing: BlockedError) -> RegistryMaker:
    """Return what runs the project's image, which the engine must have already; a last resort.

    :raises BlockedError: that is not to be had either.
    """
    from harness.registry.container import ContainerRegistry, has_image

    try:
        opened = engine()
    except BlockedError:
        raise missing from None
    if not has_image(opened, _IMAGE):
        raise BlockedError(
            f"{missing.message} Nor does the {opened.name} have the image {_IMAGE}.",
            hint=f"{missing.hint}\nOr:  docker --host {opened.url} pull {_IMAGE}",
        ) from None
    return lambda folder, settings: ContainerRegistry(opened, folder, settings, image=_IMAGE)
