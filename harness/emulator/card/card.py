"""One emulated N3000 card: what a host sees of it, and the hooks by which a test disturbs it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from harness.emulator.card.block_update import BlockUpdate
from harness.emulator.card.bmc import ALL_ONES, Bmc, Page, Progress, Status
from harness.emulator.card.dialects import DIALECTS, Generation
from harness.emulator.card.flash import CardState, Section
from harness.emulator.card.guard import Guard
from harness.emulator.card.phases import HoldPoint, Phases
from harness.emulator.card.profile import CardProfile
from harness.emulator.card.store import CardStore
from harness.emulator.card.upload import SecureUpdate, os_error
from harness.emulator.clock import Event, LabClock
from harness.errors import ConfigurationError, InfrastructureError
from harness.images.payload import PayloadIdentity, PayloadTable

#: Circumstances that a test can bring about by name: :attr:`Card.conditions`.
CONDITIONS: Final[dict[str, str]] = {
    "all-ones": "every register and flash read of the card answers with all ones",
    "no-security-group": "the driver shows no security directory",
    "ignore-upload": "an update that is started does nothing: the status never leaves idle",
    "busy": "the BMC is busy: updates and resets are refused",
    "silent": "the BMC does not answer a request to update",
    "vanishes": "the card leaves the bus while one of its attributes is read, until its power is cycled",
    "stays-away": "the card does not come back from its next reset, until its power is cycled",
}
IMAGE_LOAD_WORDS: Final = ("bmc_factory", "bmc_user", "retimer_fw")
_ALL_ONES_64: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class PciFunction:
    """A PCI function of the card. ``class_`` has 24 bits; ``driver`` is empty where none is bound."""

    address: str
    vendor: int
    device: int
    class_: int
    driver: str = ""
    subsystem_vendor: int = 0x8086
    subsystem_device: int = 0x0000


@dataclass(frozen=True, slots=True)
class CardSpec:
    """Which card this is. ``addresses``: where it is first, then where each reset moves it to.

    ``mac``: its first MAC address, which stays the same wherever it is. ``boots_at``: where it comes up when
    its host boots; its first reset takes it back to where it was.
    """

    name: str
    mac: str
    addresses: tuple[str, ...]
    boots_at: str | None = None


class Card:
    """One emulated card; safe to use from any thread. Kernel errors are OSError with their errno.

    It has power from the start. ``log`` takes what its driver writes to the kernel log, without time and
    device name. ``store`` keeps the state after every change of it. ``payloads`` names payloads that have
    no descriptor. ``generation``: of the driver that the host has for it.
    """

    def __init__(
        self,
        spec: CardSpec,
        state: CardState,
        profile: CardProfile,
        clock: LabClock,
        log: Callable[[str], None] = lambda line: None,
        store: CardStore | None = None,
        payloads: PayloadTable | None = None,
        generation: Generation = "D",
    ) -> None:
        self.spec = spec
        #: What is out of the ordinary now; see :data:`CONDITIONS` and :meth:`condition`.
        self.conditions: set[str] = set()
        here = state.address or spec.addresses[0]
        later = spec.addresses[spec.addresses.index(here) + 1 :] if here in spec.addresses else ()
        self._later = list(later)
        #: Where the card will be after its next reset or power cycle; None: where it is.
        self.moves_to: str | None = self._later.pop(0) if self._later else None
        #: Where it comes up when its host boots, until its first reset; None: where it is.
        self.boots_at = spec.boots_at
        if self.moves_to is None and here == self.boots_at:
            self.moves_to = spec.addresses[0]
        self._clock = clock
        self._log = log
        self._store = store
        #: Why the disk did not take a state of the card; what it holds is that of the instant before.
        self.lost: InfrastructureError | None = None
        #: Told when that happens, from whatever thread changed the state.
        self.on_lost: Callable[[InfrastructureError], None] = lambda error: None
        self._guard = Guard()
        self._phases = Phases(clock, self._guard)
        self._listeners: list[Callable[[], None]] = []
        self._return: Event | None = None
        self._retimer_loading = False
        self._bmc = Bmc(
            replace(state, address=here),
            profile,
            clock,
            self._phases,
            self._save,
            payloads or PayloadTable({}, {}),
        )
        #: The driver's update; :class:`BlockUpdate` where the tool drives it.
        self.upload = (BlockUpdate if generation == "A" else SecureUpdate)(
            self._bmc,
            clock,
            self._phases,
            self._guard,
            self._driver_log,
            self.conditions,
            DIALECTS[generation],
        )
        self.powered = True
        self._present = False
        if store is not None:
            store.save(self._bmc.state)
        with self._guard:
            self._arrive("user")

    # --- what a host sees ------------------------------------------------------------------------

    @property
    def address(self) -> str | None:
        """The PCI address of the management function; None while the card is not on the bus."""
        return self._bmc.state.address if self._present else None

    def functions(self) -> list[PciFunction]:
        """Return the card's PCI functions (1.1), none while it is not on the bus."""
        with self._guard:
            address = self.address
            if address is None:
                return []
            fec = self._bmc.fpga_page == "user" and self._bmc.profile.user_image_is_fec
            nics = [
                PciFunction(_on_bus(address, delta, function), 0x8086, 0x0D58, 0x020000, "i40e")
                for delta in (-1, 1)
                for function in (0, 1)
            ]
            return [
                *nics[:2],
                PciFunction(address, 0x8086, 0x0B30, 0x120000, "dfl-pci"),
                *nics[2:],
                PciFunction(_on_bus(address, 2, 0), 0x8086, 0x0D8F if fec else 0x0B32, 0x120000),
            ]

    @property
    def bitstream_id(self) -> int:
        """``dfl-fme.*/bitstream_id`` of what the FPGA runs."""
        return _ALL_ONES_64 if self._unreadable() else self._fpga().bitstream_id

    @property
    def bitstream_metadata(self) -> int:
        """``dfl-fme.*/bitstream_metadata``."""
        return _ALL_ONES_64 if self._unreadable() else self._fpga().bitstream_metadata

    @property
    def interface_id(self) -> str:
        """``compat_id`` of the region, in the form 8-4-4-4-12."""
        if self._unreadable():
            return "ffffffff-ffff-ffff-ffff-ffffffffffff"
        return self._fpga().interface_id

    def root_entry_hash(self, section: Section) -> str | None:
        """Return the root entry hash in flash; None where none is programmed, as erased flash reads."""
        return None if self._unreadable() else self._bmc.state.root(section)

    def cancelled(self, section: Section) -> frozenset[int]:
        """Return the cancelled CSK ids in flash."""
        return frozenset() if self._unreadable() else self._bmc.state.cancelled(section)

    @property
    def flash_count(self) -> int:
        """``flash_count``."""
        return 0 if self._unreadable() else self._bmc.state.flash_count

    @property
    def bmc_version(self) -> int:
        """``bmc_version``: the MAX10 build version word."""
        return ALL_ONES if self._unreadable() else self._bmc.versions.bmc_version

    @property
    def bmcfw_version(self) -> int:
        """``bmcfw_version``: the Nios firmware version word."""
        return ALL_ONES if self._unreadable() else self._bmc.versions.bmcfw_version

    @property
    def retimer_version(self) -> str:
        """Version of both retimers, such as ``101c.1064``."""
        return self._bmc.state.retimer

    @property
    def mac(self) -> str:
        """``mac_address``: the first of the card's eight."""
        return "ff:ff:ff:ff:ff:ff" if self._unreadable() else self.spec.mac

    @property
    def doorbell(self) -> int:
        """The doorbell register."""
        if self._unreadable():
            return ALL_ONES
        busy = Progress.AUTHENTICATING << 4 if "busy" in self.conditions else 0
        return self._bmc.doorbell | busy

    def image_load(self, word: str) -> None:
        """``control/image_load``: reboot the BMC from a page, or load the retimer (4.5).

        The card drops off the bus before this returns, comes back later at its next address and runs what
        is in flash by then. ``retimer_fw`` returns when it is loaded.

        :raises OSError: EINVAL, EBUSY, ENODEV, ECANCELED as the driver does.
        """
        word = word.strip()
        if word not in IMAGE_LOAD_WORDS:
            raise os_error(errno.EINVAL)
        with self._guard:
            self._check_reset_allowed()
            if word != "retimer_fw":
                self._reboot("factory" if word == "bmc_factory" else "user")
                return
            self._retimer_loading = True
        self._clock.sleep(self._bmc.profile.retimer_seconds)
        with self._guard:
            self._retimer_loaded()

    # --- what a test does ------------------------------------------------------------------------

    @property
    def state(self) -> CardState:
        """What is in flash now: an oracle for the harness's own tests, no value that a card exposes."""
        return self._bmc.state

    @property
    def running_page(self) -> Page:
        """The page that the FPGA was configured from; an oracle too."""
        return self._bmc.fpga_page

    @property
    def profile(self) -> CardProfile:
        """How the card behaves where documents leave it open."""
        return self._bmc.profile

    def fit(self, state: CardState, profile: CardProfile | None = None) -> None:
        """Put the card into ``state`` as if it had been fitted anew: power cycled, nothing held or odd.

        It stands at the slot's first address unless ``state`` names another.

        :raises InfrastructureError: the disk does not take the state.
        """
        with self._guard:
            self._leave()
            self.conditions.clear()
            if profile is not None:
                self._bmc.profile = profile
            self._bmc.state = replace(state, address=state.address or self.spec.addresses[0])
            self._save(self._bmc.state)
            self._arrive("user")
        if self.lost is not None:
            raise self.lost

    def power_off(self) -> None:
        """Cut the power of the card and of the host that it sits in."""
        with self._guard:
            if self.powered:
                self.powered = False
                self._leave()

    def power_on(self) -> None:
        """Give power again; the card is back on the bus when this returns."""
        with self._guard:
            if not self.powered:
                self.powered = True
                self.conditions.discard("stays-away")
                self._move()
                self._come_up()
                self._arrive("user")

    def host_restarted(self) -> None:
        """The host rebooted with its slots under power: its driver starts anew, the card goes on."""
        self.upload.forget()
        with self._guard:
            if self._present:
                self._come_up()
                self._notify()

    def condition(self, name: str, on: bool) -> None:
        """Bring a circumstance about, or end it. :raises ConfigurationError: no such name."""
        if name not in CONDITIONS:
            raise ConfigurationError(
                f"An emulated card has no condition {name!r}.", hint=f"Conditions: {', '.join(CONDITIONS)}."
            )
        with self._guard:
            (self.conditions.add if on else self.conditions.discard)(name)
            self._notify()

    def read_begins(self) -> None:
        """One of the card's attributes is about to be read. :raises OSError: ENODEV, the card has left."""
        with self._guard:
            if "vanishes" in self.conditions and self._present:
                self.conditions.discard("vanishes")
                self._leave()
            if not self._present:
                raise os_error(errno.ENODEV)

    def hold(self, phase: str) -> None:
        """Withhold the end of a phase, now or when it comes: lab time does not pass it until :meth:`release`.

        Loss of power ends a hold too. :raises ConfigurationError: no such phase.
        """
        with self._guard:
            self._phases.hold(phase)

    def release(self) -> None:
        """End the hold."""
        with self._guard:
            self._phases.release()

    def held(self) -> HoldPoint | None:
        """Return the phase that has begun and whose end is withheld, or None."""
        with self._guard:
            return self._phases.held()

    def on_change(self, callback: Callable[[], None]) -> None:
        """Have ``callback`` called whenever the card leaves or joins the bus, or a condition changes."""
        with self._guard:
            self._listeners.append(callback)

    # What follows is called with the guard held.

    def _fpga(self) -> PayloadIdentity:
        identity = self._bmc.fpga if self._present else None
        if identity is None:
            raise os_error(errno.ENODEV)
        return identity

    def _unreadable(self) -> bool:
        return "all-ones" in self.conditions

    def _check_reset_allowed(self) -> None:
        if not self._present:
            raise os_error(errno.ENODEV)
        if self.upload.busy or self._retimer_loading:
            raise os_error(errno.EBUSY)
        if {"all-ones", "busy"} & self.conditions or not self._bmc.accepts_request:
            self._driver_log(f"Doorbell not idle: 0x{self.doorbell:08x}")
            raise os_error(errno.EBUSY)

    def _retimer_loaded(self) -> None:
        self._retimer_loading = False
        if not self._present:
            raise os_error(errno.ENODEV)
        if self._bmc.profile.retimer_image == "duplicate":
            self._bmc.status = Status.PKVL_REJECT
            self._driver_log("duplicate image rejected")
            raise os_error(errno.ECANCELED)
        self._bmc.progress = Progress.PKVL_PROM_DONE

    def _reboot(self, page: Page) -> None:
        self._leave()
        if "stays-away" in self.conditions or "reset-stays-away" in self._bmc.profile.flaws:
            self.conditions.discard("stays-away")
            return

        def back() -> None:
            if self.powered and not self._present and self._return is event:
                self._move()
                self._arrive(page)

        when = self._clock.now() + self._bmc.profile.reset_seconds
        event = self._return = self._clock.at(when, self._phases.guarded(back))

    def _leave(self) -> None:
        """Drop off the bus; all that was going on in card and driver ends."""
        self._bmc.stop()
        self.upload.forget()
        self._phases.release()
        if self._return is not None:
            self._return.cancel()
            self._return = None
        self._present = self.upload.present = False
        self._notify()

    def _move(self) -> None:
        if self.moves_to is not None:
            address, self.moves_to = self.moves_to, self._later.pop(0) if self._later else None
            self._stand_at(address)

    def _come_up(self) -> None:
        """Stand where the host's firmware puts the card, until its first reset."""
        here = self._bmc.state.address
        if self.boots_at is not None and here != self.boots_at:
            self.moves_to = self.moves_to or here
            self._stand_at(self.boots_at)

    def _stand_at(self, address: str) -> None:
        self._bmc.state = replace(self._bmc.state, address=address)
        self._save(self._bmc.state)

    def _arrive(self, page: Page) -> None:
        self._bmc.boot(page)
        self._present = self.upload.present = self._bmc.fpga is not None
        self._notify()

    def _save(self, state: CardState) -> None:
        """Have the disk take ``state``; the first that it does not take is the last that is tried.

        What is on disk is then what a power cut at that very instant would have left. Nothing is raised:
        this runs in the midst of what the card does, often in the clock's thread.
        """
        if self._store is None or self.lost is not None:
            return
        try:
            self._store.save(state)
        except InfrastructureError as error:
            self.lost = error
            self._guard.tell(partial(self.on_lost, error))

    def _driver_log(self, line: str) -> None:
        self._guard.tell(lambda: self._log(line))

    def _notify(self) -> None:
        for listener in self._listeners:
            self._guard.tell(listener)


def _on_bus(address: str, delta: int, function: int) -> str:
    """Return function ``function`` of device 0 on the bus that lies ``delta`` behind that of ``address``."""
    domain, bus, _ = address.split(":")
    return f"{domain}:{(int(bus, 16) + delta) % 256:02x}:00.{function}"
