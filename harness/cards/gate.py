"""The only place where permits for cards are issued: each with its check, and its command."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from harness.cards.eras import FLASHER, IMAGE, RESETTER, Place
from harness.cards.generations import attributes_of
from harness.cards.interlock import CardEntry, check, check_standing, check_wear, worn_out
from harness.cards.tool_output import PID_MARK
from harness.cards.truth import CardTruth
from harness.cards.update_count import OwnCount, UpdateCount
from harness.errors import HarnessBug, RefusedError
from harness.hosts.permits import Authority, Permit
from harness.images.facts import ImageFacts, image_facts
from harness.judgement.values import Value
from harness.leases.hold import LOCK_FOLDER, held

ResetKind = Literal["bmcimg", "retimer"]
SignalName = Literal["TERM", "INT", "KILL", "HUP", "STOP", "CONT"]

_AUTHORITY = Authority("cards")
_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")
_UPLOADED = re.compile(r"/(?:[A-Za-z0-9._+-]+/)*hil-[0-9a-f-]+\.bin")
#: Generation D: the kernel's firmware-upload; B: the security manager. A and C have an ioctl; there is no way
#: to write to that.
_FORM = r"/[A-Za-z0-9._:/+-]+/(?:firmware/secure-update[0-9]*|i?fpga_sec_mgr/i?fpga_sec[0-9]+/update)"
_INTERFACE = re.compile(_FORM)
_CANCEL = re.compile(f"{_FORM}/cancel")
_TOPIC = re.compile(r"fme|security|phy|bmc")
#: Where the kernel's loader finds a file that is named to generation B's driver.
FIRMWARE_FOLDER = "/usr/lib/firmware"
_SHA256 = re.compile(r"[0-9a-f]{64}")
#: How a command says that the file it was to flash is another one by now; no tool of the cards ends so.
CHANGED = 76
CHANGED_MARK = "hil-image-changed"
#: And how that at the card's address another card stands by now.
EXCHANGED = 77
EXCHANGED_MARK = "hil-card-exchanged"
_SIGNALS = frozenset({"TERM", "INT", "KILL", "HUP", "STOP", "CONT"})
#: As sysinv runs the tool (n3000.md 1.2): its progress bar is not ASCII.
_LOCALE = {"LC_ALL": "C.UTF-8", "LANG": "C.UTF-8"}


class Gate:
    """Permits for one card on one host; every command that a permit covers is composed here.

    :param host: the host's name. :param entry: the card in the inventory, with what it permits.
    :param real: whether it is real hardware. :param allowed: what ``--hil-irreversible`` names.
    :param tools: ``fpgasupdate``, ``rsu`` -> name or path on the host.
    :param locks: folder of the locks on the host. :param sysfs: where the host's sysfs is mounted.
    :param fence: raises unless the card may be written to now: asked before each permit that reaches it.
    :param updates: counts the updates that the run has begun; None: all that this gate permits.
    """

    def __init__(
        self,
        host: str,
        entry: CardEntry,
        *,
        real: bool,
        allowed: Collection[str],
        tools: Mapping[str, str] | None = None,
        locks: str = LOCK_FOLDER,
        sysfs: str = "/sys",
        fence: Callable[[], None] = lambda: None,
        updates: UpdateCount | None = None,
    ) -> None:
        self._host = host
        self._entry = entry
        self._real = real
        self._allowed = frozenset(allowed)
        self._tools = dict(tools or {})
        self._locks = locks
        self._sysfs = sysfs
        self._fence = fence
        self._updates = updates or OwnCount()
        self._known: tuple[bytes, ImageFacts] | None = None

    @property
    def permitted(self) -> frozenset[str]:
        """The irreversible acts that may happen to the card in this run."""
        permitted = frozenset(self._entry.irreversible)
        return permitted & self._allowed if self._real else permitted

    def facts(self, data: bytes, name: str) -> ImageFacts:
        """Return what the image ``data`` is, decided from its bytes; nothing is checked yet."""
        # Bytes do not change, so that the same object needs to be looked at only once.
        if type(data) is bytes and self._known is not None and self._known[0] is data:
            return self._known[1]
        facts = image_facts(bytes(data), name)
        self._known = (data, facts)
        return facts

    def irreversible(self, data: bytes, name: str) -> bool:
        """Return whether flashing ``data`` may do what cannot be undone, whatever anybody states of it."""
        return bool(self.facts(data, name).irreversible)

    def image(self, data: bytes, name: str, stated: ImageFacts | None = None) -> ImageFacts:
        """Return the facts of ``data`` once the interlock has let it pass.

        :param stated: facts that the caller has already, such as with the identity of a tabled payload.
        :raises RefusedError: the card does not permit what the image does, or ``stated`` is about
            other bytes.
        """
        facts = self.facts(data, name)
        check(self._entry, facts, self._allowed, self._real)
        if stated is None:
            return facts
        if (stated.sha256, stated.effect) != (facts.sha256, facts.effect):
            raise RefusedError(
                f"What was stated of the image {name!r} is about other bytes "
                f"({stated.effect}, sha256 {stated.sha256[:12]}...); nothing was changed."
            )
        return stated

    def stands(self, seen: CardTruth, *, known: str | None = None, while_updating: bool = False) -> None:
        """:raises RefusedError: what was ``seen`` is another card, cannot be told, or updates now."""
        name = f"{self._host}/{self._entry.name}"
        check_standing(self._entry, seen, name, known=known, while_updating=while_updating)

    def wears(self, seen: CardTruth) -> None:
        """:raises RefusedError: the card's budget of updates is used up."""
        begun = self._updates.begun(self._entry)
        check_wear(self._entry, seen, f"{self._host}/{self._entry.name}", begun)

    def used_up(self, flash_count: Value[int]) -> str:
        """Return why the card's budget of updates allows no further one; empty where it does."""
        return worn_out(self._entry, flash_count, self._updates.begun(self._entry))

    def upload(self, data: bytes, path: str) -> Permit:
        """Return the permit to put the image ``data`` at ``path``."""
        facts = self.image(data, path)
        _must(_UPLOADED, path)
        return _AUTHORITY.write("upload", self._host, path, facts.sha256, self._entry.name, self._fence)

    def flash(
        self, data: bytes, sha256_on_host: str, path: str, seen: CardTruth, place: Place | None = None
    ) -> Permit:
        """Return the permit to flash the file ``path`` to the card that was ``seen`` just now.

        :param sha256_on_host: what the host says that the file holds.
        :param place: where the host has the tool; by default it is the host's own.
        :raises RefusedError: the file on the host is not ``data``, the card does not permit it, is another
            one, updates already, or is worn enough.
        """
        facts = self._arrived(data, sha256_on_host, path)
        address, identity = self._updatable(seen)
        command = self._held(self._checked(place).flash(path, address), identity)
        return self._begin(_started(command, self._same_card(address, identity), (path, facts.sha256)))

    def kernel_upload(self, data: bytes, sha256_on_host: str, path: str, seen: CardTruth) -> Permit:
        """Return the permit to hand the file ``path`` to the update interface of the driver of the card.

        The writes are those of Documentation/ABI/testing/sysfs-class-firmware (generation D) and
        sysfs-class-ifpga-sec-mgr (B): the file's bytes, or its name in the kernel's firmware folder. The
        interface is the folder ``.../firmware/secure-updateN`` or ``.../ifpga_secN/update`` of ``seen``.

        :raises RefusedError: as :meth:`flash` does.
        """
        facts = self._arrived(data, sha256_on_host, path)
        address, identity = self._updatable(seen)
        interface = posixpath.dirname(seen.sources.get("update_status", ""))
        _must(_INTERFACE, interface)
        if not interface.startswith(f"{self._device(address)}/"):
            raise HarnessBug(f"{interface!r} is no interface of the card at {address}.")
        writes = (
            f"echo 1 > {interface}/loading && cat {path} > {interface}/data && echo 0 > {interface}/loading"
        )
        if interface.endswith("/update"):
            folder, name = posixpath.split(path)
            if folder != FIRMWARE_FOLDER:
                raise HarnessBug(f"{path!r} is not where the kernel looks for a file that is named to it.")
            writes = f"printf %s {name} > {interface}/filename"
        command = self._held(["sh", "-c", writes], identity)
        return self._begin(_started(command, self._same_card(address, identity), (path, facts.sha256)))

    def _arrived(self, data: bytes, sha256_on_host: str, path: str) -> ImageFacts:
        """:raises RefusedError: the file on the host is not ``data``, or the card does not permit it."""
        facts = self.image(data, path)
        if facts.sha256 != sha256_on_host:
            raise RefusedError(
                f"The file {path} on {self._host} is not the image that was put there "
                f"(sha256 {sha256_on_host[:12] or 'unknown'}); nothing was flashed.",
                hint="Something else writes to the upload folder, or the transfer was damaged.",
            )
        _must(_UPLOADED, path)
        return facts

    def _updatable(self, seen: CardTruth) -> tuple[str, str]:
        """Return address and identity of the card. :raises RefusedError: no update of it may begin."""
        self.stands(seen)
        self.wears(seen)
        return self._of(seen)

    def _of(self, seen: CardTruth) -> tuple[str, str]:
        address, identity = seen.address, seen.identity
        _must(_ADDRESS, address)
        _must(_MAC, identity)
        return str(address), str(identity)

    def _held(self, argv: Sequence[str], identity: str) -> list[str]:
        return held(argv, identity, self._locks)

    def _begin(self, argv: list[str]) -> Permit:
        self._updates.begin(self._entry)
        return _AUTHORITY.command("flash", self._host, argv, self._entry.name, self._fence)

    def _device(self, address: str) -> str:
        return f"{self._sysfs}/bus/pci/devices/{address}"

    def _same_card(self, address: str, identity: str) -> str:
        """Return the test of a shell on the host that the card is still the one at ``address``."""
        device = shlex.quote(self._device(address))
        files = " ".join(f"{device}/{attribute.pattern}" for attribute in attributes_of("identity"))
        return f"grep -qixs {identity} {files} || {{ echo {EXCHANGED_MARK} >&2; exit {EXCHANGED}; }}; "

    def reset(
        self,
        kind: ResetKind,
        seen: CardTruth,
        page: str | None = None,
        place: Place | None = None,
        *,
        while_updating: bool = False,
    ) -> Permit:
        """Return the permit to reset the card that was ``seen`` just now.

        :param page: BMC page: user, factory. :param while_updating: an update is meant to be disturbed.
        :raises RefusedError: it is another card, cannot be told, or updates.
        """
        self.stands(seen, while_updating=while_updating)
        address, identity = self._of(seen)
        plain = type(kind) is str and (page is None or type(page) is str)
        if not plain or kind not in ("bmcimg", "retimer") or page not in (None, "user", "factory"):
            raise RefusedError(f"There is no reset {kind!r} with page {page!r} of an N3000.")
        words = (kind, address, *(("-p", page) if page else ()))
        command = self._held(self._checked(place).ask("rsu", *words), identity)
        argv = _started(command, self._same_card(address, identity))
        return _AUTHORITY.command("reset", self._host, argv, self._entry.name, self._fence)

    def signal(self, name: str, pid: int) -> Permit:
        """Return the permit to send the signal ``name`` to a tool that this card's driver started.

        It reaches nobody else's tool, and so needs no lease: one that is lost must still end.
        """
        if type(name) is not str or name not in _SIGNALS or type(pid) is not int or pid <= 1:
            raise RefusedError(
                f"The signal {name!r} is not sent to process {pid}.",
                hint=f"Known: {', '.join(sorted(_SIGNALS))}.",
            )
        return _AUTHORITY.command("signal", self._host, ["kill", f"-{name}", str(pid)], self._entry.name)

    def cancel(self, path: str) -> Permit:
        """Return the permit to write to ``path``, the cancel attribute of the card's update interface."""
        _must(_CANCEL, path)
        argv = ["sh", "-c", f"echo 1 > {shlex.quote(path)}"]
        return _AUTHORITY.command("cancel-update", self._host, argv, self._entry.name, self._fence)

    def report(self, topic: str, address: str, place: Place) -> Permit:
        """Return the permit to have `fpgainfo` of a tool image show ``topic``: that runs a container."""
        _must(_TOPIC, topic)
        _must(_ADDRESS, address)
        argv = self._checked(place).ask("fpgainfo", topic, address)
        return _AUTHORITY.command("report", self._host, argv, self._entry.name)

    def clear(self, container: str, place: Place) -> Permit:
        """Return the permit to remove a tool's ``container`` that an earlier run has left behind."""
        if type(container) is not str or container not in (FLASHER, RESETTER):
            raise HarnessBug(f"{container!r} is no container of the card's tools.")
        argv = self._checked(place).remove(container)
        return _AUTHORITY.command("remove", self._host, argv, self._entry.name, self._fence)

    def _checked(self, place: Place | None) -> Place:
        """Return ``place``, the host's own tools by default, if what it names may be part of a command.

        Which programs the tools are is the inventory's to say, and no caller's.
        """
        place = replace(place, tools=self._tools) if place else Place("host", tools=self._tools)
        if place.era != "host":
            _must(IMAGE, place.image)
        return place

    def remove(self, path: str) -> Permit:
        """Return the permit to remove the image file ``path`` that was put on the host."""
        _must(_UPLOADED, path)
        return _AUTHORITY.command("remove", self._host, ["rm", "-f", path], self._entry.name)


def _started(argv: Sequence[str], same_card: str, image: tuple[str, str] | None = None) -> list[str]:
    """Return the command that says its process id and then becomes ``argv``.

    :param same_card: looks once more who stands at the address, so that cards that change their places
        between our look and the tool's are told.
    :param image: path and SHA-256 of the file that ``argv`` flashes. The host looks at it once more, too, so
        that nobody can put another in its place.
    """
    locale = " ".join(f"{name}={value}" for name, value in _LOCALE.items())
    unchanged = ""
    if image is not None:
        path, sha256 = image
        _must(_SHA256, sha256)
        unchanged = (
            f'[ "$(sha256sum <{path})" = "{sha256}  -" ] || {{ echo {CHANGED_MARK} >&2; exit {CHANGED}; }}; '
        )
    return ["sh", "-c", f"echo {PID_MARK}$$; {unchanged}{same_card}{locale} exec {shlex.join(argv)}"]


def _must(form: re.Pattern[str], text: object) -> None:
    if type(text) is not str or form.fullmatch(text) is None or ".." in text:
        raise HarnessBug(f"{text!r} was to become part of a command on a host, and is not of its form.")
