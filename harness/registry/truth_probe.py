"""The whole truth of images: by the API, by the store, and by the API once more after a restart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.registry.reference import Reference
from harness.registry.service import RegistryService
from harness.registry.store import Store
from harness.registry.truth import ANYTHING, Comparison, Expected, ImageTruth, compare
from harness.registry.truth_api import ApiTruth
from harness.registry.truth_store import StoreTruth
from harness.registry.wire import Authorizer

AFTER_RESTART = "after a restart"


class TruthProbe:
    """Reads one registry by every way that is open.

    :param store: its store; None where it cannot be seen: then the truth is by the API only.
    :param authorizer: how the API is got into, whatever a fault has done to tokens.
    """

    def __init__(
        self, service: RegistryService, store: Store | None, authorizer: Authorizer | None = None
    ) -> None:
        self._service = service
        self._store = StoreTruth(store) if store is not None else None
        self._authorizer = authorizer

    def image(
        self, reference: Reference, expected: Expected = ANYTHING, *, restart: bool = True
    ) -> Comparison:
        """Return what is true of one image; see :meth:`images`."""
        return self.images([(reference, expected)], restart=restart)[0]

    def images(
        self, wanted: Sequence[tuple[Reference, Expected]], *, restart: bool = True
    ) -> list[Comparison]:
        """Return what is true of each image.

        :param restart: whether the registry may be restarted, once, to ask it again without its caches;
            what its store cannot show for want of access, this can.
        :raises InfrastructureError: it does not come back from its restart.
        """
        found = [self._now(reference, expected) for reference, expected in wanted]
        if restart:
            self._service.restart()
            with ApiTruth(self._service.endpoint, self._authorizer) as api:
                for truths, (reference, expected) in zip(found, wanted, strict=True):
                    truths.append(replace(api.image(reference, expected), moment=AFTER_RESTART))
        return [compare(*truths) for truths in found]

    def _now(self, reference: Reference, expected: Expected) -> list[ImageTruth]:
        with ApiTruth(self._service.endpoint, self._authorizer) as api:
            truths = [api.image(reference, expected)]
        if self._store is not None:
            truths.append(self._store.image(reference, expected))
        return truths
