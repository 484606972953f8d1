"""The registries of one lab, each started (emulated) or reached (real) on first use, ended with the lab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import BlockedError, HarnessError

if TYPE_CHECKING:
    from harness.hosts.protocol import Host
    from harness.inventory.model import Lab
    from harness.inventory.registries import EmulatedRegistry, Registry
    from harness.lab.push_bench import PushBench


class Registries:
    """Benches by the name of their registry; a context manager that ends them.

    One that could not be started or reached is not tried again: the same error is raised at once.

    :param lab: of the inventory. :param host: returns the driver of a host of it, by name.
    :param folder: where a registry of this name keeps everything; a temporary one by default.
    """

    def __init__(
        self, lab: Lab, host: Callable[[str], Host], folder: Callable[[str], Path] | None = None
    ) -> None:
        self._lab = lab
        self._host = host
        self._folder = folder
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
            raise self._failed[entry.name]
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
            return _emulated(entry.name, entry.emulated, folder)
        from harness.lab.real_registry import RealRegistryBench

        host = self._host(entry.host) if entry.host is not None else None
        return RealRegistryBench(entry, host, folder)

    def close(self) -> None:
        """End all of them, the last first; may be called twice."""
        while self._benches:
            self._benches.popitem()[1].close()


def _emulated(name: str, entry: EmulatedRegistry, folder: Path | None) -> PushBench:
    from harness.lab.registry_bench import RegistryBench
    from harness.registry.configuration import RegistrySettings

    if entry.service == "container":
        raise BlockedError(
            f"The registry {name} is to run as a container, which this version does not start in a lab.",
            hint="Let it run as a process: emulated: {service: process}.",
        )
    settings = RegistrySettings(cache=entry.cache, delete=entry.delete, drain=entry.drain)
    return RegistryBench(folder, settings=settings, tls=entry.tls, guarded=entry.tokens, name=name)
