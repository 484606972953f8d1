"""The only place where permits for cards are issued: each with its check, and its command."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

from harness.cards.eras import FLASHER, IMAGE, RESETTER, Place
from harness.cards.interlock import CardEntry, check
from harness.cards.tool_output import PID_MARK
from harness.errors import HarnessBug, RefusedError
from harness.hosts.permits import Authority, Permit
from harness.images.facts import ImageFacts, image_facts
from harness.leases.hold import LOCK_FOLDER, held

ResetKind = Literal["bmcimg", "retimer"]
SignalName = Literal["TERM", "INT", "KILL", "HUP", "STOP", "CONT"]

_AUTHORITY = Authority("cards")
_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
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
_SIGNALS = frozenset({"TERM", "INT", "KILL", "HUP", "STOP", "CONT"})
#: As sysinv runs the tool (n3000.md 1.2): its progress bar is not ASCII.
_LOCALE = {"LC_ALL": "C.UTF-8", "LANG": "C.UTF-8"}


class Gate:
    """Permits for one card on one host; every command that a permit covers is composed here.

    :param host: the host's name. :param entry: the card in the inventory, with what it permits.
    :param real: whether it is real hardware. :param allowed: what ``--hil-irreversible`` names.
    :param tools: ``fpgasupdate``, ``rsu`` -> name or path on the host.
    :param locks: folder of the locks on the host.
    :param fence: raises unless the card may be written to now: asked before each permit that reaches it.
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
        fence: Callable[[], None] = lambda: None,
    ) -> None:
        self._host = host
        self._entry = entry
        self._real = real
        self._allowed = frozenset(allowed)
        self._tools = dict(tools or {})
        self._locks = locks
        self._fence = fence
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

    def upload(self, data: bytes, path: str) -> Permit:
        """Return the permit to put the image ``data`` at ``path``."""
        facts = self.image(data, path)
        _must(_UPLOADED, path)
        self._fence()
        return _AUTHORITY.write("upload", self._host, path, facts.sha256, self._entry.name)

    def flash(
        self,
        data: bytes,
        sha256_on_host: str,
        path: str,
        address: str,
        identity: str,
        place: Place | None = None,
    ) -> Permit:
        """Return the permit to flash the file ``path`` to the card at ``address``.

        :param sha256_on_host: what the host says that the file holds.
        :param place: where the host has the tool; by default it is the host's own.
        :raises RefusedError: the file on the host is not ``data``, or the card does not permit it.
        """
        self._arrived(data, sha256_on_host, path)
        _must(_ADDRESS, address)
        command = held(self._checked(place).flash(path, address), identity, self._locks)
        argv = _started(command, (path, sha256_on_host))
        self._fence()
        return _AUTHORITY.command("flash", self._host, argv, self._entry.name)

    def kernel_upload(
        self, data: bytes, sha256_on_host: str, path: str, interface: str, identity: str
    ) -> Permit:
        """Return the permit to hand the file ``path`` to the update ``interface`` of the card's driver.

        The writes are those of Documentation/ABI/testing/sysfs-class-firmware (generation D) and
        sysfs-class-ifpga-sec-mgr (B): the file's bytes, or its name in the kernel's firmware folder.

        :param interface: the folder ``.../firmware/secure-updateN`` or ``.../ifpga_secN/update``.
        :raises RefusedError: as :meth:`flash` does.
        """
        self._arrived(data, sha256_on_host, path)
        _must(_INTERFACE, interface)
        writes = (
            f"echo 1 > {interface}/loading && cat {path} > {interface}/data && echo 0 > {interface}/loading"
        )
        if interface.endswith("/update"):
            folder, name = posixpath.split(path)
            if folder != FIRMWARE_FOLDER:
                raise HarnessBug(f"{path!r} is not where the kernel looks for a file that is named to it.")
            writes = f"printf %s {name} > {interface}/filename"
        argv = _started(held(["sh", "-c", writes], identity, self._locks), (path, sha256_on_host))
        self._fence()
        return _AUTHORITY.command("flash", self._host, argv, self._entry.name)

    def _arrived(self, data: bytes, sha256_on_host: str, path: str) -> None:
        """:raises RefusedError: the file on the host is not ``data``, or the card does not permit it."""
        if self.image(data, path).sha256 != sha256_on_host:
            raise RefusedError(
                f"The file {path} on {self._host} is not the image that was put there "
                f"(sha256 {sha256_on_host[:12] or 'unknown'}); nothing was flashed.",
                hint="Something else writes to the upload folder, or the transfer was damaged.",
            )
        _must(_UPLOADED, path)

    def reset(
        self,
        kind: ResetKind,
        address: str,
        identity: str,
        page: str | None = None,
        place: Place | None = None,
    ) -> Permit:
        """Return the permit to reset the card at ``address``. :param page: BMC page: user, factory."""
        _must(_ADDRESS, address)
        if kind not in ("bmcimg", "retimer") or page not in (None, "user", "factory"):
            raise RefusedError(f"There is no reset {kind!r} with page {page!r} of an N3000.")
        words = (kind, address, *(("-p", page) if page else ()))
        argv = _started(held(self._checked(place).ask("rsu", *words), identity, self._locks))
        self._fence()
        return _AUTHORITY.command("reset", self._host, argv, self._entry.name)

    def signal(self, name: str, pid: int) -> Permit:
        """Return the permit to send the signal ``name`` to a tool that this card's driver started.

        It reaches nobody else's tool, and so needs no lease: one that is lost must still end.
        """
        if name not in _SIGNALS or pid <= 1:
            raise RefusedError(
                f"The signal {name!r} is not sent to process {pid}.",
                hint=f"Known: {', '.join(sorted(_SIGNALS))}.",
            )
        return _AUTHORITY.command("signal", self._host, ["kill", f"-{name}", str(pid)], self._entry.name)

    def cancel(self, path: str) -> Permit:
        """Return the permit to write to ``path``, the cancel attribute of the card's update interface."""
        _must(_CANCEL, path)
        argv = ["sh", "-c", f"echo 1 > {shlex.quote(path)}"]
        self._fence()
        return _AUTHORITY.command("cancel-update", self._host, argv, self._entry.name)

    def report(self, topic: str, address: str, place: Place) -> Permit:
        """Return the permit to have `fpgainfo` of a tool image show ``topic``: that runs a container."""
        _must(_TOPIC, topic)
        _must(_ADDRESS, address)
        argv = self._checked(place).ask("fpgainfo", topic, address)
        return _AUTHORITY.command("report", self._host, argv, self._entry.name)

    def clear(self, container: str, place: Place) -> Permit:
        """Return the permit to remove a tool's ``container`` that an earlier run has left behind."""
        if container not in (FLASHER, RESETTER):
            raise HarnessBug(f"{container!r} is no container of the card's tools.")
        self._fence()
        return _AUTHORITY.command(
            "remove", self._host, self._checked(place).remove(container), self._entry.name
        )

    def _checked(self, place: Place | None) -> Place:
        """Return ``place``, the host's own tools by default, if what it names may be part of a command."""
        place = place or Place("host", tools=self._tools)
        if place.era != "host":
            _must(IMAGE, place.image)
        return place

    def remove(self, path: str) -> Permit:
        """Return the permit to remove the image file ``path`` that was put on the host."""
        _must(_UPLOADED, path)
        return _AUTHORITY.command("remove", self._host, ["rm", "-f", path], self._entry.name)


def _started(argv: Sequence[str], image: tuple[str, str] | None = None) -> list[str]:
    """Return the command that says its process id and then becomes ``argv``.

    :param image: path and SHA-256 of the file that ``argv`` flashes. The host looks at it once more, so that
        nobody can put another in its place between our look and the tool's.
    """
    locale = " ".join(f"{name}={value}" for name, value in _LOCALE.items())
    unchanged = ""
    if image is not None:
        path, sha256 = image
        _must(_SHA256, sha256)
        unchanged = (
            f'[ "$(sha256sum <{path})" = "{sha256}  -" ] || {{ echo {CHANGED_MARK} >&2; exit {CHANGED}; }}; '
        )
    return ["sh", "-c", f"echo {PID_MARK}$$; {unchanged}{locale} exec {shlex.join(argv)}"]


def _must(form: re.Pattern[str], text: str) -> None:
    if form.fullmatch(text) is None or ".." in text:
        raise HarnessBug(f"{text!r} was to become part of a command on a host, and is not of its form.")
