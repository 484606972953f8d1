"""One StarlingX system: what it says is recorded as claims, what is asked as intents, past the interlock."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, Protocol, TypeVar

from harness.controlplane.changes import Change, WayIn
from harness.controlplane.gate import Gate
from harness.controlplane.protocol import (
    Alarm,
    DeviceImage,
    DeviceImageState,
    DeviceLabel,
    HostState,
    Label,
    PciDevice,
    Said,
    Upload,
)
from harness.controlplane.told import Told, subject_of
from harness.controlplane.vim import VimStrategy
from harness.errors import ConfigurationError, ControlPlaneError
from harness.judgement.records import Subject
from harness.judgement.values import Unknown
from harness.record.operations import Recording

S = TypeVar("S", bound=Said)
#: What a look asks for, by the kinds of records.
ASKED: Final = ("image", "state", "label", "device", "host", "alarm")
#: Class of the devices that have the fields of an FPGA (section 1.6).
_FPGA: Final = ("120000", "120001")
#: The update of one functional image takes up to an hour before the system itself gives it up (section 4.7).
UPDATE_DEADLINE: Final = 2 * 3600.0
_BUSY: Final = ("in-progress", "in-progress-aborted")


class Readable(Protocol):
    """What was read from a card (see :class:`harness.cards.truth.CardTruth`)."""

    @property
    def sources(self) -> Mapping[str, str]:
        """Field -> what it was read from."""
        ...

    def values(self) -> dict[str, Any]:
        """Field -> value."""
        ...


class CardOfSystem(Protocol):
    """A card in a host of the system (see :class:`harness.cards.driver.CardDriver`)."""

    @property
    def subject(self) -> Subject:
        """The card."""
        ...

    def truth(self) -> Readable:
        """Read it."""
        ...


class SystemDriver(Told[WayIn]):
    """A :class:`harness.controlplane.protocol.ControlPlane` that records.

    :param gate: its interlock; the rest as for :class:`harness.controlplane.told.Told`.
    """

    def __init__(
        self, way: WayIn, gate: Gate, history: Recording, *, clock: Callable[[], float] | None = None
    ) -> None:
        super().__init__(way, history, clock=clock)
        self._gate = gate
        self._promise: dict[str, str] = {}

    # -- what it says ---------------------------------------------------------------------------------

    def images(self) -> list[DeviceImage]:
        """Return all images."""
        return self._claimed(self._way.images())

    def image(self, ident: str) -> DeviceImage:
        """Return one image by uuid, id or name."""
        return self._claimed([self._way.image(ident)])[0]

    def states(self) -> list[DeviceImageState]:
        """Return what became of each image on each device."""
        return self._claimed(self._way.states())

    def labels(self) -> list[DeviceLabel]:
        """Return all labels."""
        return self._claimed(self._way.labels())

    def devices(self, hostname: str) -> list[PciDevice]:
        """Return the PCI devices of a host, disabled ones too."""
        return self._claimed(self._way.devices(hostname))

    def device(self, hostname: str, device: str) -> PciDevice:
        """Return one PCI device of a host by name or address."""
        return self._claimed([self._way.device(hostname, device)])[0]

    def hosts(self) -> list[HostState]:
        """Return all hosts."""
        return self._claimed(self._way.hosts())

    def host(self, hostname: str) -> HostState:
        """Return one host by its hostname."""
        return self._claimed([self._way.host(hostname)])[0]

    def alarms(self) -> list[Alarm]:
        """Return the alarms that are set."""
        return self._claimed(self._way.alarms())

    def vim_strategy(self) -> VimStrategy | None:
        """Return the firmware strategy of the system's VIM; None where there is none.

        :raises NotOfferedError: the system has no VIM that could be asked.
        """
        found = self._claimed(self._way.vim_strategy())
        return found[0] if found else None

    def look(self, cards: Iterable[tuple[str, CardOfSystem]] = ()) -> None:
        """Record everything that the system says and what its cards hold, while nothing is asked of it.

        What it refuses to list, such as all images for one that it cannot show, does not keep the rest from
        being recorded; that refusal is raised at the end.

        :param cards: hostname in the system, and the card in that host.
        """
        parts: dict[str, Callable[[], Sequence[Said]]] = {
            "image": self._way.images,
            "state": self._way.states,
            "label": self._way.labels,
            "alarm": self._way.alarms,
        }
        refused: list[ControlPlaneError] = []
        with self._recorded("look", "", {"asked": list(ASKED)}) as intent:
            for kind in ASKED:
                try:
                    if kind in parts:
                        self._claimed(parts[kind](), intent)
                    elif kind == "host":
                        for host in self._way.hosts():
                            self._claimed([self._way.host(host.hostname)], intent)
                    else:
                        for host in self._way.hosts():
                            self._look_at_devices(host.hostname, intent)
                except ControlPlaneError as error:
                    refused.append(error)
            for hostname, card in cards:
                truth = card.truth()
                values = truth.values() | {"system": self.name, "hostname": hostname}
                self._observed("card", card.subject, values, intent, truth.sources)
            if refused:
                raise refused[0]

    def _look_at_devices(self, hostname: str, intent: int) -> None:
        """Record the devices of a host; an FPGA as it is shown alone: a list may not have its fields."""
        for device in self._way.devices(hostname):
            whole = not isinstance(device.bitstream_id, Unknown) or device.class_id not in _FPGA
            self._claimed([device if whole else self._way.device(hostname, device.address)], intent)

    # -- what is asked of it --------------------------------------------------------------------------

    def upload(self, image: Upload, *, promise: Literal["lands", "unchanged"] = "lands") -> DeviceImage:
        """Upload an image; return it as the system shows it. What it is by its bytes is an observation.

        :param promise: what documents promise for the card that gets it.
        :raises RefusedError: no card of the system may get what it is, decided from its bytes.
        """
        shown = self._one(Change("image-upload", image=image), DeviceImage)
        facts = self._gate.learn(shown.uuid, image.content, image.name or image.filename)
        values = {"image": facts.to_json(), "promise": promise}
        self._observed("image", subject_of(self.name, shown), values)
        return shown

    def delete(self, uuid: str) -> None:
        """Delete an image."""
        self._change(Change("image-delete", uuid))
        self._gate.forget(uuid)

    def apply(self, uuid: str, labels: Collection[Label] = ()) -> DeviceImage:
        """Apply an image to the devices with any of the labels; without labels to every device.

        :raises RefusedError: one of them may not get what it is.
        """
        return self._one(Change("image-apply", uuid, labels=tuple(labels)), DeviceImage)

    def remove(self, uuid: str, labels: Collection[Label] = ()) -> DeviceImage:
        """Take back what :meth:`apply` did."""
        return self._one(Change("image-remove", uuid, labels=tuple(labels)), DeviceImage)

    def assign_labels(
        self, hostname: str, device: str, labels: Mapping[str, str], *, overwrite: bool = False
    ) -> list[DeviceLabel]:
        """Give a device labels; return the new ones.

        :raises RefusedError: an image that is applied to one of them may not go to the device.
        """
        change = Change("label-assign", hostname, device, tuple(labels.items()), overwrite=overwrite)
        return [said for said in self._change(change) if isinstance(said, DeviceLabel)]

    def remove_labels(self, hostname: str, device: str, keys: Collection[str]) -> None:
        """Take labels off a device, all values of each key."""
        self._change(Change("label-remove", hostname, device, keys=tuple(keys)))

    def enable_device(self, hostname: str, device: str, enabled: bool) -> PciDevice:
        """Have a device enabled, or disabled; its host must be locked. Return it as it is shown then."""
        return self._one(Change("device-modify", hostname, device, enabled=enabled), PciDevice)

    def update(self, hostname: str) -> HostState:
        """Start writing what is pending on a host; the answer shows the host as it was before, or just after.

        :raises RefusedError: a device may not get what is pending for it, or what failed before.
        """
        return self._one(Change("host-update", hostname), HostState)

    def abort(self, hostname: str) -> HostState:
        """Ask that nothing more is written after the image that is being written."""
        return self._one(Change("host-abort", hostname), HostState)

    def lock(self, hostname: str, *, force: bool = False) -> HostState:
        """Ask for a host to be locked; the answer shows it as it was before, or just after."""
        return self._one(Change("host-lock", hostname, force=force), HostState)

    def unlock(self, hostname: str) -> HostState:
        """Ask for a host to be unlocked, which reboots it."""
        return self._one(Change("host-unlock", hostname), HostState)

    def reboot(self, hostname: str) -> HostState:
        """Ask for a locked host to be rebooted."""
        return self._one(Change("host-reboot", hostname), HostState)

    # -- waiting --------------------------------------------------------------------------------------

    def update_and_wait(self, hostname: str, *, deadline: float = UPDATE_DEADLINE) -> list[DeviceImageState]:
        """Start the update of a host and wait until it writes nothing more; return the host's states then.

        The answer to the start, and what is shown right after it, can be of before: it is over only once
        something that was owed has changed, and neither the host nor one of its states is in progress.

        :raises DeadlineError: it does not end in time. :raises ConfigurationError: nothing is owed.
        """
        before = {_key(state): state for state in self._states_of(self._way, hostname)}
        owed = [key for key, state in before.items() if state.status in ("pending", "failed")]
        if not owed:
            raise ConfigurationError(
                f"{self.name} has nothing to write on {hostname}: no state there is pending or failed.",
                hint="Apply an image first, to all devices or to a label that one has.",
            )
        self.update(hostname)
        host: list[HostState] = []

        def look(way: WayIn) -> list[DeviceImageState]:
            host[:] = [way.host(hostname)]
            return self._states_of(way, hostname)

        def over(states: Sequence[DeviceImageState]) -> bool:
            now = {_key(state): state for state in states}
            moved = any(now.get(key) != before[key] for key in owed)
            busy = any(state.status == "in-progress" for state in states)
            return moved and not busy and host[0].device_image_update not in _BUSY

        ended = self.wait_until(f"the update of {hostname} ends", look, over, deadline=deadline)
        self.host(hostname)
        return ended

    def wait_for_host(
        self, hostname: str, done: Callable[[HostState], bool], what: str, *, deadline: float
    ) -> HostState:
        """Wait until a host is as ``done`` says; return it. :raises DeadlineError: it is not, in time."""
        seen = self.wait_until(
            f"{hostname} {what}",
            lambda way: [way.host(hostname)],
            lambda hosts: done(hosts[0]),
            deadline=deadline,
        )
        return seen[0]

    @staticmethod
    def _states_of(way: WayIn, hostname: str) -> list[DeviceImageState]:
        return [state for state in way.states() if state.hostname == hostname]

    def _one(self, change: Change, kind: type[S]) -> S:
        (said,) = self._change(change)
        if not isinstance(said, kind):
            raise TypeError(f"{change.act} was answered by a {type(said).__name__}")
        return said

    @contextmanager
    def promised(self, what: Literal["refused", "taken"]) -> Iterator[None]:
        """Let it be recorded of the changes meanwhile what the system must do with them."""
        self._promise = {"promise": what}
        try:
            yield
        finally:
            self._promise = {}

    def _change(self, change: Change) -> list[Said]:
        said = change.parameters() | self._promise
        with self._recorded(change.act, change.target, said) as intent:
            permits = self._gate.permits(change, self._way)
            return self._claimed(self._way.carry_out(change, permits), intent)


def _key(state: DeviceImageState) -> tuple[object, ...]:
    """Return what tells a state from the others, whatever way it was asked for."""
    return state.address, state.image_uuid
