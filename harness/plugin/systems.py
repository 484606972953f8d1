"""What scenarios do to a StarlingX system: upload, label, apply, update, boot, remove; all recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from harness.errors import ConfigurationError, ControlPlaneError, LinkLostError
from harness.judgement.records import Observation, Subject
from harness.plugin.scenario import step
from harness.plugin.system_faults import POWER, SystemFaults
from harness.scenarios.steps import is_step, taken_as

if TYPE_CHECKING:
    from harness.controlplane.driver import SystemDriver
    from harness.controlplane.protocol import Upload
    from harness.lab.system_bench import SystemBench
    from harness.plugin.acting import Acting
    from harness.plugin.images import Image, ImageShelf

T = TypeVar("T")
Effect = Literal["lands", "unchanged"]
#: Lab seconds that follow an act, so that agents and conductor are done with it; after a boot: its reset of
#: the cards, the agent's start and its reports.
_ACT_SECONDS: Final = 1.0
_LOCK_SECONDS: Final = 10.0
_BOOT_SECONDS: Final = 300.0
#: Real seconds that a real host may take to lock and to boot.
_REAL_LOCK_DEADLINE: Final = 600.0
_REAL_BOOT_DEADLINE: Final = 3600.0


@dataclass
class System:
    """The ``system`` fixture: one StarlingX system. A look follows every act that owes or takes something.

    ``place``: the subcloud that it is of a cloud; empty: the system that a scenario is about.
    """

    session: Acting
    bench: SystemBench
    shelf: ImageShelf
    place: str = ""

    def __post_init__(self) -> None:
        self.faults = SystemFaults(self.bench)

    @property
    def driver(self) -> SystemDriver:
        """What asks the system, and records it."""
        return self.bench.driver

    # -- images ---------------------------------------------------------------------------------------

    @is_step("upload", of="system", image="image", promise="effect", fields="fields")
    def upload(self, image: Image | str, promise: Effect = "lands", **fields: Any) -> str:
        """Upload an image; return its uuid.

        What the system is told of it is read from its bytes; a BMC image's id is its MD5, as documents advise
        (section 1.1). ``fields`` of :class:`harness.controlplane.protocol.Upload` say otherwise.

        :param promise: what documents promise of it on the cards of this system.
        """
        image = self.shelf[image] if isinstance(image, str) else image
        with self._act(f"upload {image.name}", look=False):
            uuid = self.driver.upload(_upload(image, fields)).uuid
            read = {"image": image.facts.to_json(), "promise": promise}
            subject = Subject("record", f"{self.bench.name}/image/{uuid}")
            self.bench.history.add(Observation(probe="image-bytes", subject=subject, values=read))
            self.bench.download([uuid])
        return uuid

    @is_step("apply", of="system", image="result", labels="labels")
    def apply(self, image: str, **labels: str) -> None:
        """Apply an image to devices with any of the labels; without labels to all."""
        with self._act("apply an image"):
            self.driver.apply(image, tuple(labels.items()))

    @is_step("remove", of="system", image="result", labels="labels")
    def remove(self, image: str, **labels: str) -> None:
        """Take back what :meth:`apply` did."""
        with self._act("remove an image"):
            self.driver.remove(image, tuple(labels.items()))

    @is_step("delete", of="system", image="result")
    def delete(self, image: str) -> None:
        """Delete an image."""
        with self._act("delete an image"):
            self.driver.delete(image)

    # -- devices and hosts ----------------------------------------------------------------------------

    @is_step("label", of="system", labels="labels", device="text")
    def label(self, device: str = "", /, **labels: str) -> None:
        """Give the first card labels, or another one by its name, or a device of its host by its address."""
        hostname, address = self._place(device)
        with self._act(f"label {address}", look=False):
            self.driver.assign_labels(hostname, address, labels)

    @is_step("unlabel", of="system", keys="texts")
    def unlabel(self, *keys: str) -> None:
        """Take labels off the first card."""
        hostname, address = self._place("")
        with self._act(f"unlabel {address}"):
            self.driver.remove_labels(hostname, address, keys)

    @is_step("enable-device", of="system", on="flag", device="text")
    def enable_device(self, on: bool = True, *, device: str = "") -> None:
        """Have the first card enabled, or another one by its name, or disabled; its host must be locked."""
        hostname, address = self._place(device)
        with self._act(f"{'enable' if on else 'disable'} {address}", look=False):
            self.driver.enable_device(hostname, address, on)

    @is_step("update", of="system", watch="flag")
    def update(self, *, watch: bool = False) -> None:
        """Have every host write what is owed to its cards, and wait until it does nothing more.

        :param watch: look whenever it begins to write a card; an emulated one alone tells when.
        """
        for hostname in self._hostnames():
            with self._act(f"update {hostname}"):
                self.bench.download(self._owed(hostname))
                if self.bench.bench is None:
                    self.driver.update_and_wait(hostname)
                    continue
                with self.faults.watching(hostname) if watch else self.faults.meeting():
                    self.driver.update(hostname)

    def _owed(self, hostname: str) -> list[str]:
        """Return the images that the next update of a host writes."""
        owed = [
            s for s in self.driver.states() if s.hostname == hostname and s.status in ("pending", "failed")
        ]
        return sorted({str(state.image_uuid) for state in owed if isinstance(state.image_uuid, str)})

    @is_step("boot", of="system")
    def boot(self) -> None:
        """Lock and unlock every host, which boots it and resets its cards."""
        for hostname in self._hostnames():
            with self._act(f"boot {hostname}"):
                self._lock(hostname)
                self._unlock(hostname)

    @is_step("lock", of="system")
    def lock(self) -> None:
        """Lock every host."""
        for hostname in self._hostnames():
            with self._act(f"lock {hostname}"):
                self._lock(hostname)

    @is_step("unlock", of="system")
    def unlock(self) -> None:
        """Unlock every host, which boots it and resets its cards."""
        for hostname in self._hostnames():
            with self._act(f"unlock {hostname}"):
                self._unlock(hostname)

    @is_step("abort", of="system")
    def abort(self) -> None:
        """Abort the update of every host: what is not begun is not written."""
        for hostname in self._hostnames():
            with self._act(f"abort the update of {hostname}"):
                self.driver.abort(hostname)

    def _lock(self, hostname: str) -> None:
        self.driver.lock(hostname)
        self._wait(hostname, "is locked", "locked", _LOCK_SECONDS, _REAL_LOCK_DEADLINE)

    def _unlock(self, hostname: str) -> None:
        with suppress(LinkLostError):  # a controller that boots itself breaks it
            self.driver.unlock(hostname)
        self._wait(hostname, "is unlocked", "unlocked", _BOOT_SECONDS, _REAL_BOOT_DEADLINE)
        self.bench.reach_again(hostname)

    @is_step("refused", of="system", act="steps")
    def refused(self, act: Any, *arguments: Any, **options: Any) -> str:
        """Do what the system must refuse; return its text. That it takes it is judged as a BREACH."""
        try:
            with self.driver.promised("refused"):
                act(*arguments, **options)
        except ControlPlaneError as refusal:
            return refusal.message
        return ""

    @is_step("taken", of="system", act="steps")
    def taken(self, act: Callable[..., T], *arguments: Any, **options: Any) -> T | None:
        """Do what the system must take. That it refuses it is judged as a BREACH; None is returned then."""
        with self.driver.promised("taken"):
            return self.attempt(act, *arguments, **options)

    @is_step("attempt", of="system", act="steps")
    def attempt(self, act: Callable[..., T], *arguments: Any, **options: Any) -> T | None:
        """Do what a system may refuse; how it ended is judged. Returns None where it refused."""
        try:
            return act(*arguments, **options)
        except ControlPlaneError:
            return None

    @is_step("disturb", of="system", name="text", value="value", at="flash-point")
    def disturb(self, name: str, value: int | float | str | bool | None = None, *, at: str = "") -> None:
        """Make something go wrong in the system, or right again (:meth:`harness.lab.bench.Bench.trouble`).

        Beside the troubles of a system: ``reboot`` (the first card's host, under power), ``power-cut``,
        ``move`` (its card comes back at another address after its next reset), ``boot-elsewhere`` (it is at
        another address from each boot to the reset that follows). A look follows what boots a host now: the
        next one must tell this boot from those that bring up what is written in between.

        :param at: the phase of the first card's next update in which it strikes; empty: now.
        :raises NotApplicable: the system is real.
        """
        self.faults.disturb(name, value, at)
        if name in POWER and not at:
            self.look()

    @is_step("disturb-host", of="system", name="text", on="flag", at="flash-point")
    def disturb_host(self, name: str, *, on: bool = True, at: str = "") -> None:
        """Bring a circumstance of the first card's host about, such as ``disk-full``, or end it.

        :raises NotApplicable: the system is real.
        """
        self.faults.disturb_host(name, on, at)

    @is_step("at", of="system", point="flash-point", act="steps")
    def at(self, point: str, act: Callable[..., object], *arguments: Any, **options: Any) -> None:
        """Do something while the first card's next update is held in a phase; it is recorded as a fault is.

        :raises NotApplicable: the system is real.
        """
        self.faults.at(point, act.__name__, partial(act, *arguments, **options))

    @is_step("look", of="system")
    def look(self) -> None:
        """Record what the system says now, and what its cards show."""
        self.bench.look()

    @taken_as("wait")
    def pass_time(self, seconds: float) -> None:
        """Let lab time pass, and look."""
        with self._act(f"{seconds:g} s of lab time"):
            self.bench.pass_time(seconds)

    # -- steps ----------------------------------------------------------------------------------------

    @contextmanager
    def _act(self, title: str, *, look: bool = True) -> Iterator[None]:
        """Do something, and look afterwards, even where the system refused."""
        with step(self.session, self.bench.name, title):
            try:
                yield
            finally:
                if not self.faults.held:
                    self.bench.pass_time(_ACT_SECONDS)
                if look:
                    self.look()

    def _wait(self, hostname: str, what: str, wanted: str, seconds: float, deadline: float) -> None:
        if self.bench.bench is not None:
            self.bench.pass_time(seconds)
            return
        self.driver.wait_for_host(
            hostname,
            lambda host: host.administrative == wanted and host.task in (None, ""),
            what,
            deadline=deadline,
        )

    def _hostnames(self) -> list[str]:
        return sorted({placed.hostname for placed in self.bench.cards.values()})

    def _place(self, device: str) -> tuple[str, str]:
        """Return hostname and address of a device (:meth:`label`), where it is now."""
        first = next(iter(self.bench.cards.values()))
        placed = self.bench.cards.get(device, first)
        other = device and device not in self.bench.cards
        return placed.hostname, device if other else placed.driver.address


def _upload(image: Image, fields: dict[str, Any]) -> Upload:
    from harness.controlplane.protocol import Upload

    facts = image.facts
    said: dict[str, Any] = {"filename": f"{image.name.replace('/', '-')}.bin", "name": image.name}
    if facts.effect == "root-key":
        said |= {"bitstream_type": "root-key", "key_signature": facts.programs_root}
    elif facts.effect == "key-cancellation":
        said |= {"bitstream_type": "key-revocation", "revoke_key_id": facts.cancel_id}
    elif facts.effect == "bmc-image":
        digest = hashlib.md5(image.data, usedforsecurity=False).hexdigest()
        said |= {"bitstream_type": "functional", "bitstream_id": digest, "bmc": True}
    elif isinstance(facts.bitstream_id, int):
        said |= {"bitstream_type": "functional", "bitstream_id": f"{facts.bitstream_id:#x}"}
    elif "bitstream_type" not in fields:
        raise ConfigurationError(
            f"What {image.name} is to be uploaded as cannot be read from its bytes.",
            hint="Say it: system.upload(image, bitstream_type='functional', bitstream_id='0x1').",
        )
    return Upload(image.data, **said | fields)
