"""A coordinator of labgrid, asked over gRPC: which places there are, who has one, take it, give it back."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from harness.errors import BlockedError, ConfigurationError, InfrastructureError, LeasedError

#: Seconds that one answer of a coordinator may take.
_DEADLINE: Final = 15.0
_EXTRA: Final = "pip install 'hil-harness[labgrid]'"


@dataclass(frozen=True, slots=True)
class Place:
    """A place of a coordinator.

    ``acquired``: who has it, as ``host/user``; empty where nobody does. ``services``: the parameters of each
    ``NetworkService`` that belongs to it (address, username, port), by the name of the resource.
    """

    name: str
    acquired: str
    tags: Mapping[str, str]
    services: Mapping[str, Mapping[str, Any]]


class Coordinator:
    """One coordinator. Each question is a connection of its own: what is acquired outlives it.

    The form of the messages is that of labgrid 26.0 (labgrid-coordinator.proto). Every method raises
    :class:`harness.errors.InfrastructureError` where the coordinator does not answer.

    :param address: ``HOST:PORT``. :param name: who asks, as ``host/user``.
    :raises BlockedError: labgrid is not installed.
    """

    def __init__(self, address: str, name: str) -> None:
        try:
            import grpc
            from labgrid.remote.generated import labgrid_coordinator_pb2 as messages
            from labgrid.remote.generated import labgrid_coordinator_pb2_grpc as service
        except ImportError:
            raise BlockedError(
                f"The coordinator {address} cannot be asked: labgrid is not installed.", hint=_EXTRA
            ) from None
        self._grpc, self._messages, self._service = grpc, messages, service
        self.address = address
        self.name = name

    def places(self) -> list[Place]:
        """Return all places, by name."""
        from labgrid.remote.common import Place as Entry
        from labgrid.remote.common import build_dict_from_map

        subscribed = self._messages.ClientInMessage()
        subscribed.subscribe.all_resources = True
        with self._session(subscribed) as (stub, updates):
            entries = [
                Entry.from_pb2(each) for each in stub.GetPlaces(self._none(), timeout=_DEADLINE).places
            ]
        services: dict[tuple[str, ...], Mapping[str, Any]] = {}
        for resource in (update.resource for update in updates if update.WhichOneof("kind") == "resource"):
            if resource.cls == "NetworkService":
                path = resource.path
                found = (path.exporter_name, path.group_name, resource.cls, path.resource_name)
                services[found] = build_dict_from_map(resource.params)
        return [
            Place(
                entry.name,
                entry.acquired or "",
                dict(entry.tags),
                {path[-1]: told for path, told in sorted(services.items()) if entry.hasmatch(path)},
            )
            for entry in sorted(entries, key=lambda entry: str(entry.name))
        ]

    def owner(self, place: str) -> str:
        """Return who has ``place``; empty where nobody does. :raises ConfigurationError: there is none."""
        with self._session() as (stub, _):
            found = {p.name: p.acquired for p in stub.GetPlaces(self._none(), timeout=_DEADLINE).places}
        if place not in found:
            raise ConfigurationError(
                f"The coordinator {self.address} has no place {place!r}.",
                hint=f"Its places: {', '.join(sorted(found)) or 'none'}; "
                f"labgrid-client -x {self.address} -p {place} create",
            )
        return str(found[place])

    def acquire(self, place: str) -> None:
        """Take ``place``. :raises LeasedError: somebody has it, or it is reserved for somebody.

        :raises ConfigurationError: there is no such place.
        """
        if owner := self.owner(place):
            raise LeasedError(
                f"{owner} has the place {place} of labgrid ({self.address}); nothing was changed.",
                hint=f"Wait for it, or: labgrid-client -x {self.address} -p {place} release --kick",
            )
        with self._session() as (stub, _):
            asked = self._messages.AcquirePlaceRequest(placename=place)
            try:
                stub.AcquirePlace(asked, timeout=_DEADLINE)
            except self._grpc.RpcError as error:
                codes = self._grpc.StatusCode
                if error.code() not in (codes.FAILED_PRECONDITION, codes.PERMISSION_DENIED):
                    raise
                raise LeasedError(
                    f"The place {place} of labgrid ({self.address}) is not to be had: {error.details()}.",
                    hint=f"See: labgrid-client -x {self.address} -p {place} show",
                ) from None

    def release(self, place: str, owner: str) -> None:
        """Give ``place`` back for ``owner``; where another one has it, or nobody, nothing happens."""
        with self._session() as (stub, _):
            asked = self._messages.ReleasePlaceRequest(placename=place, fromuser=owner)
            stub.ReleasePlace(asked, timeout=_DEADLINE)

    def _none(self) -> Any:
        return self._messages.GetPlacesRequest()

    @contextmanager
    def _session(self, *words: Any) -> Iterator[tuple[Any, list[Any]]]:
        """Give a client of a connection that the coordinator knows as ours, and the updates that it told."""
        said: queue.SimpleQueue[Any] = queue.SimpleQueue()
        hello, sync = self._messages.ClientInMessage(), self._messages.ClientInMessage()
        hello.startup.version, hello.startup.name = "hil", self.name
        sync.sync.id = 1
        for word in (hello, *words, sync):
            said.put(word)
        try:
            with self._grpc.insecure_channel(self.address) as channel:
                stub = self._service.CoordinatorStub(channel)
                stream = stub.ClientStream(iter(said.get, None), timeout=2 * _DEADLINE)
                updates: list[Any] = []
                try:
                    for message in stream:
                        updates += message.updates
                        if message.HasField("sync"):
                            break
                    yield stub, updates
                finally:
                    said.put(None)
                    stream.cancel()
        except self._grpc.RpcError as error:
            raise InfrastructureError(
                f"The coordinator {self.address} of labgrid does not do what it is asked: "
                f"{error.code().name}: {error.details()}.",
                hint="Is labgrid-coordinator running there, and is it of labgrid 25 or newer?",
            ) from None
