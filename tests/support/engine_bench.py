"""A registry whose certificate an engine checks, and what is true of the images pushed to it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from harness.registry.assembled import ACCOUNT, RegistryLab
from harness.registry.clients.catalogue import Surroundings
from harness.registry.clients.protocol import Destination
from harness.registry.engine import Engine
from harness.registry.images import Image
from harness.registry.reference import Reference
from harness.registry.truth import Expected, TruthState


@dataclass(frozen=True, slots=True)
class EngineBench:
    """A registry, and the engine that pushes to it."""

    lab: RegistryLab
    engine: Engine
    surroundings: Surroundings

    def destination(
        self, repository: str = "a/b", tag: str = "v1", *, password: str = "lab-only"
    ) -> Destination:
        registry = f"{self.engine.registry_host()}:{self.lab.registry.port}"
        return Destination(Reference(registry, repository, tag), self.lab.authority.file, ACCOUNT, password)

    def truth(self, image: Image, destination: Destination) -> TruthState:
        """What the registry holds of ``image``, by its config: the engine packs layers anew."""
        expected = Expected(config=image.config.digest)
        found = self.lab.probe.image(destination.reference, expected, restart=False)
        assert found.agrees, found.disagreement
        return found.state

    def digest(self, destination: Destination) -> str:
        """The digest of the manifest that the registry has."""
        return str(self.lab.probe.image(destination.reference, restart=False).truths[0].digest)

    def tags(self) -> set[str]:
        """What the engine has of this registry's images, and of the source that nobody pulls from."""
        with closing(self.engine.client()) as client:
            known = {tag for image in client.images.list() for tag in image.tags}
        return {tag for tag in known if tag.startswith(("registry.central", self._registry))}

    @property
    def _registry(self) -> str:
        return self.destination().reference.registry
