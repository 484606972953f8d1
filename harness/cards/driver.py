"""One card's operations: flash, reset, cancel, signal, report; each recorded, each read back."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cards.discovery import find_card
from harness.cards.eras import FLASHER, RESETTER
from harness.cards.gate import FIRMWARE_FOLDER, Gate, ResetKind
from harness.cards.interlock import CardEntry
from harness.cards.kernel_log import auth_report, new_lines
from harness.cards.looking import CardReader, Look, wait_until_idle
from harness.cards.parsers import parse_fpgainfo
from harness.cards.recording import Recorder, evidence_of
from harness.cards.results import FlashResult, ResetResult
from harness.cards.tool_output import (
    Progress,
    fpgasupdate_statement,
    rsu_statement,
    upload_statement,
    without_pid,
)
from harness.cards.tool_runner import ToolRunner
from harness.cards.truth import UPDATE_FIELDS, CardTruth
from harness.cards.update_count import UpdateCount
from harness.errors import (
    CardLostError,
    ConfigurationError,
    DeadlineError,
    DeviceError,
    NotOfferedError,
    RefusedError,
)
from harness.hosts.permits import Permit
from harness.hosts.protocol import Asked, CommandResult, Host
from harness.hosts.sources import image_content
from harness.judgement.records import Evidence, Promise, Subject
from harness.judgement.values import Unknown
from harness.leases.hold import LOCK_FOLDER
from harness.record.operations import Recording

if TYPE_CHECKING:
    from harness.images.facts import ImageFacts

#: The tool gives up after 300 s + 300 s + 2 h + 3 h, the kernel after 40 min (n3000.md 4.6).
FLASH_DEADLINE = 2.5 * 3600
#: The kernel polls a running update this long at most (n3000.md 4.4).
IDLE_DEADLINE = 45 * 60.0
RESET_DEADLINE = 600.0
#: How long the drivers of a card that is back on the bus may take to bind.
SETTLE = 3.0
_RETURNS = Promise("returns", source="OPAE rsu; Intel UG 683519")


class CardDriver:
    """One card of the inventory.

    :param host: the machine it is in. :param entry: the card in the inventory.
    :param history: where everything is recorded.
    :param real: whether it is real hardware; then ``allowed`` limits what cannot be undone.
    :param tools: ``fpgasupdate``, ``fpgainfo``, ``rsu``, ``docker``, ``ctr`` -> name or path on the host.
    :param upload_dir: folder on the host for images. :param locks: folder for the exclusive hold.
    :param settle: seconds that a card may take to answer after a reset.
    :param fence: raises unless the card may be written to now; asked before each write.
    :param updates: counts the updates that the run has begun; None: all that this driver begins.
    """

    def __init__(
        self,
        host: Host,
        entry: CardEntry,
        history: Recording,
        *,
        real: bool,
        allowed: Collection[str] = frozenset(),
        sysfs: str = "/sys",
        tools: Mapping[str, str] | None = None,
        upload_dir: str = "/tmp",
        locks: str = LOCK_FOLDER,
        settle: float = SETTLE,
        fence: Callable[[], None] = lambda: None,
        updates: UpdateCount | None = None,
    ) -> None:
        self.host = host
        self.name = f"{host.name}/{entry.name}"
        self._entry = entry
        self._gate = Gate(
            host.name,
            entry,
            real=real,
            allowed=allowed,
            tools=tools,
            locks=locks,
            sysfs=sysfs,
            fence=fence,
            updates=updates,
        )
        self._record = Recorder(history)
        self._sysfs, self._reader = sysfs, CardReader(host, sysfs)
        #: The boot during which an update began whose end nothing shows (generation A).
        self._unseen: str | None = None
        self._settle = settle
        self._address, self._identity = entry.address, entry.identity
        self._runner = ToolRunner(
            host,
            self._gate,
            self.name,
            address=lambda: self._address,
            card=lambda: self._identity or self._address,
            tools=tools or {},
            upload_dir=upload_dir,
            abandoned=lambda: self.signal("TERM"),
        )

    @property
    def address(self) -> str:
        """The PCI address at which the card was last found."""
        return self._address

    @property
    def identity(self) -> str | None:
        """The card's first MAC; None until it was read, where the inventory does not state it."""
        return self._identity

    @property
    def permitted(self) -> frozenset[str]:
        """The irreversible acts that may happen to this card in this run."""
        return self._gate.permitted

    def used_up(self) -> str:
        """Return why the card's budget of updates allows no further one; empty where it does."""
        if self._entry.wear is None:
            return ""
        return self._gate.used_up(self.truth({"flash_count"}).flash_count)

    @property
    def subject(self) -> Subject:
        """This card, at the address at which it was last found."""
        return Subject("card", self.name, self.host.name, self._address, self._identity or "")

    # -- reading --------------------------------------------------------------------------------------

    def truth(self, fields: Collection[str] | None = None, *, deadline: float = 30.0) -> CardTruth:
        """Read the card at its address; nothing is recorded. :raises InfrastructureError: no answer."""
        return self._noted(self._reader.truth(self._address, fields, deadline=deadline))

    def truth_beside(self, asked: Sequence[Asked]) -> tuple[CardTruth, list[CommandResult]]:
        """Read the card and ask more in one round trip. :raises InfrastructureError: there is no answer."""
        truth, results = self._reader.truth_beside(self._address, asked)
        return self._noted(truth), results

    def observe(self, moment: str = "", intent: int | None = None, *, deadline: float = 30.0) -> CardTruth:
        """Read the card and record what was read."""
        truth = self.truth(deadline=deadline)
        self._record.observation(self.subject, truth, moment, intent)
        return truth

    def locate(self, *, deadline: float = 300.0) -> str:
        """Return where the card is now, by its identity; waits for the host if it is booting.

        :raises DeadlineError: the host does not take a login in time.
        :raises CardLostError: the card is nowhere on the host.
        """
        self.host.wait_until_reachable(deadline=deadline)
        if self._found(self._settle) is None:
            raise CardLostError(
                f"The card {self.name} ({self._identity or self._address}) is not on {self.host.name}.",
                hint="It may have fallen off the bus; a power cycle of the host brings it back.",
            )
        return self._address

    def report(self, intent: int | None = None) -> dict[str, object]:
        """Ask `fpgainfo`, record its claims and the truth of the same moment; return what it claimed.

        :raises InfrastructureError: the host cannot be asked, or has no `fpgainfo`.
        """
        self.observe(intent=intent)
        claimed: dict[str, object] = {}
        for topic in ("fme", "security"):
            result = self._runner.report(topic)
            cards = parse_fpgainfo(result.stdout)
            statement = cards[0].statement() if len(cards) == 1 else {}
            self._record.claim("fpgainfo", self.subject, statement, evidence_of(result), intent)
            claimed |= statement
        return claimed

    # -- changing -------------------------------------------------------------------------------------

    def flash(
        self,
        data: bytes | Path,
        name: str,
        promise: Promise | None,
        *,
        facts: ImageFacts | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        at_phase: Callable[[str], None] | None = None,
        deadline: float = FLASH_DEADLINE,
        idle_deadline: float = IDLE_DEADLINE,
    ) -> FlashResult:
        """Flash an image with the host's `fpgasupdate`, and read the card before and after.

        :param data: the image, or the file that holds it. :param name: for people.
        :param promise: what documents promise. :param facts: what is known of the image already.
        :param on_progress: called with each step of the tool's progress.
        :param at_phase: called once as the tool announces each phase: ``waiting``, ``preparing``,
            ``transferring``, ``programming``; the tool goes on meanwhile.
        :param deadline: seconds for the tool.
        :param idle_deadline: seconds after the tool has ended for the card to become idle.
        :raises RefusedError: the interlock said no, or the card cannot be told from another.
        :raises LinkLostError: the link broke while the tool ran; it made no statement.
        :raises DeadlineError: the tool, or the card afterwards, took too long.
        :raises InfrastructureError: the host cannot take the image, has no tool, or the card is in use.
        """
        content = image_content(data)
        parameters = {"image": self._stated(content, name, facts).to_json(), "name": name}
        with self._record.operation("flash", self.subject, parameters, promise) as intent:
            known = self._gate.image(content, name, facts)
            seen = self._look()
            before = self._before_update(intent, seen.truth)
            with self._runner.on_host(content, self._tidy(before)) as there, self._followed(before):
                place = self._runner.place(FLASHER)
                permit = self._gate.flash(content, there.sha256, there.path, before, place)
                result = self._runner.run(
                    permit, deadline, on_progress, at_phase, by_blocks=before.generation == "A"
                )
            text = without_pid(result.text)
            statement = fpgasupdate_statement(text, result.exit_code)
            if statement.result == "interrupted":
                self._note_unseen(before)
            self._record.claim(
                "fpgasupdate", self.subject, statement.to_json(), evidence_of(result, text), intent
            )
        late = self._wait_until_idle(idle_deadline) if there.seen is None else None
        after, code = self._after(intent, seen.log, there.seen or self._look(), late)
        return FlashResult(intent, known, statement, result.exit_code, code, before, after, result.seconds)

    def upload(
        self,
        data: bytes | Path,
        name: str,
        promise: Promise | None,
        *,
        facts: ImageFacts | None = None,
        deadline: float = IDLE_DEADLINE,
    ) -> FlashResult:
        """Hand an image to the update interface of the card's driver, without the vendor's tool.

        The tool refuses some files before the card sees them; so the card's own answer can be had.
        What the kernel says of the update (its ``error``) is the claim of ``firmware-upload``.

        :param deadline: seconds for the update to end. Otherwise as :meth:`flash`.
        :raises NotOfferedError: the driver takes updates by ioctl only, and is not written to.
        :raises DeviceError: the driver of the card offers no such interface.
        """
        content = image_content(data)
        stated = self._stated(content, name, facts)
        parameters = {"image": stated.to_json(), "name": name, "reporter": "firmware-upload"}
        with self._record.operation("flash", self.subject, parameters, promise) as intent:
            known = self._gate.image(content, name, facts)
            seen = self._look()
            before = self._before_update(intent, seen.truth)
            self._interface()  # says what is missing
            folder = FIRMWARE_FOLDER if before.generation == "B" else ""
            with self._runner.on_host(content, self._tidy(before), folder) as there:
                permit = self._gate.kernel_upload(content, there.sha256, there.path, before)
                result = self._runner.run(permit, deadline)
                late = self._wait_until_idle(deadline)
            error = self.truth(UPDATE_FIELDS).update_error
            statement = upload_statement(error, without_pid(result.text), result.exit_code)
            said = f"{without_pid(result.text)}error: {error}"
            self._record.claim(
                "firmware-upload", self.subject, statement.to_json(), evidence_of(result, said), intent
            )
        after, code = self._after(intent, seen.log, there.seen or self._look(), late)
        return FlashResult(intent, known, statement, result.exit_code, code, before, after, result.seconds)

    def reset(
        self,
        kind: ResetKind = "bmcimg",
        *,
        page: str | None = None,
        promise: Promise | None = _RETURNS,
        while_updating: bool = False,
        deadline: float = RESET_DEADLINE,
    ) -> ResetResult:
        """Reset the card with the host's `rsu` and find it again by its identity.

        :param kind: ``bmcimg`` reloads BMC and FPGA, ``retimer`` the retimers. :param page: BMC page.
        :param while_updating: reset although an update runs, which can end with a broken flash.
        :raises RefusedError: an update runs, or may do so unseen.
        :raises LinkLostError: the link broke meanwhile.
        """
        parameters = {"kind": kind} | ({"page": page} if page else {})
        with self._record.operation("reset", self.subject, parameters, promise) as intent:
            before = self._before(intent, self.truth(), while_updating=while_updating)
            place = self._runner.place(RESETTER)
            permit = self._gate.reset(kind, before, page, place, while_updating=while_updating)
            result = self._runner.run(permit, deadline)
            text = without_pid(result.text)
            statement = rsu_statement(text, result.exit_code)
            self._record.claim("rsu", self.subject, statement.to_json(), evidence_of(result, text), intent)
        address = self._found(self._settle)
        after = self.observe("after-reset", intent)
        return ResetResult(intent, statement, result.exit_code, address, after)

    def cancel_update(self) -> CommandResult:
        """Ask the kernel to cancel the card's update; the result's exit code says whether it took it.

        :raises NotOfferedError: the driver takes updates by ioctl only, and is not written to.
        :raises DeviceError: the driver of the card offers no update interface.
        """
        with self._record.operation("cancel-update", self.subject, {}, None):
            permit = self._gate.cancel(posixpath.join(self._interface(), "cancel"))
            return self.host.run(permit.argv, permit=permit)

    def signal(self, name: str = "TERM") -> CommandResult:
        """Send a signal to the tool that works on the card now.

        :raises ConfigurationError: none does.
        """
        pid = self._runner.pid
        with self._record.operation("signal", self.subject, {"signal": name, "pid": pid}, None):
            if pid is None:
                raise ConfigurationError(
                    f"No tool works on {self.name}, so there is nothing to send SIG{name} to.",
                    hint="Send it from `at_phase` of a flash.",
                )
            permit = self._gate.signal(name, pid)
            return self.host.run(permit.argv, permit=permit)

    def require_update_attributes(self) -> CardTruth:
        """Return what is true of an update now, if the card's driver takes and shows one by attributes.

        :raises NotOfferedError: it takes updates by ioctl only (generations A and C).
        :raises DeviceError: it offers no update interface at all.
        """
        status = self.truth(UPDATE_FIELDS | {"generation"})
        if isinstance(status.generation, Unknown):
            raise DeviceError(
                f"{self.name} offers no update interface: {status.generation}.",
                hint="The kernel needs the driver of the card's secure update.",
            )
        if not status.updates_by_attributes:
            raise NotOfferedError(
                f"The driver of {self.name} is of generation {status.generation}: its update interface is an "
                "ioctl, to which the harness does not write, and nothing shows how far an update is.",
                hint="Such a card is flashed by the vendor's tool.",
            )
        return status

    def _interface(self) -> str:
        """Return the folder of the update interface of the card's driver.

        :raises NotOfferedError: it has none that the harness writes to.
        :raises DeviceError: it has none, or it cannot be read.
        """
        status = self.require_update_attributes()
        if isinstance(status.update_status, Unknown):
            raise DeviceError(
                f"The update interface of {self.name} cannot be read: {status.update_status}.",
                hint="See the kernel's log on its host.",
            )
        return posixpath.dirname(status.sources["update_status"])

    # -- steps ----------------------------------------------------------------------------------------

    def _noted(self, truth: CardTruth) -> CardTruth:
        if self._identity is None and isinstance(truth.identity, str):
            self._identity = truth.identity
        return truth

    def _look(self) -> Look:
        seen = self._reader.look(self._address)
        self._noted(seen.truth)
        return seen

    def _tidy(self, before: CardTruth) -> Callable[[Permit], Look | None]:
        """Return what removes an image from the host and looks at the card in the same exchange."""
        return lambda remove: self._reader.remove_and_look(remove, before, self._address)

    def _before(self, intent: int, truth: CardTruth, *, while_updating: bool = False) -> CardTruth:
        """Record the card as it was read before an operation; make sure that it is this card, and idle.

        :param while_updating: an update is meant to be disturbed.
        """
        other = isinstance(truth.identity, str) and truth.identity != self._identity
        gone = not truth.on_bus and self._identity is not None
        if (other or gone) and self._found(0.0) is not None:
            truth = self.truth()
        self._record.observation(self.subject, truth, "before", intent)
        self._gate.stands(truth, known=self._identity, while_updating=while_updating)
        if not while_updating:
            self._check_nothing_unseen(truth)
        return truth

    def _before_update(self, intent: int, truth: CardTruth) -> CardTruth:
        """The same before an update, which wears the card."""
        truth = self._before(intent, truth)
        self._gate.wears(truth)
        return truth

    def _stated(self, content: bytes, name: str, facts: ImageFacts | None) -> ImageFacts:
        """Return the facts of an image for the record of an intent: ``facts`` where they are about it."""
        own = self._gate.facts(content, name)
        return facts if facts is not None and facts.sha256 == own.sha256 else own

    @contextmanager
    def _followed(self, before: CardTruth) -> Iterator[None]:
        """Run a tool meanwhile; note where it is lost."""
        self._unseen, self._runner.phase = None, ""
        try:
            yield
        except BaseException:
            self._note_unseen(before)
            raise

    def _note_unseen(self, before: CardTruth) -> None:
        """A tool is gone before its end: remember an update that the card may go on with unseen.

        Generation A shows nothing of an update, and its card goes on with what it programs. Every other one
        shows it, or lets no tool go before.
        """
        if before.generation == "A" and self._runner.phase == "programming":
            self._unseen = before.boot_id if isinstance(before.boot_id, str) else ""

    def _check_nothing_unseen(self, before: CardTruth) -> None:
        """:raises RefusedError: an update of the card may run unseen."""
        booted = isinstance(before.boot_id, str) and self._unseen not in ("", before.boot_id)
        if self._unseen is not None and not booted:
            raise RefusedError(
                f"The last update of {self.name} was left while the card programmed, and its driver does not "
                "show whether that is over; another act could break it. Nothing was changed.",
                hint="Programming takes up to 40 minutes. Wait that long and cycle the host's power.",
            )

    def _wait_until_idle(self, deadline: float) -> DeadlineError | None:
        """Wait for the card's update to be over; return the error where it does not end in time."""
        try:
            wait_until_idle(lambda: self.truth(UPDATE_FIELDS), self.name, deadline)
        except DeadlineError as late:
            return late
        return None

    def _found(self, settle: float) -> str | None:
        """Find the card by its identity (by its address where that is not known) within ``settle`` s."""
        end = time.monotonic() + settle
        pause = 0.02
        while True:
            if self._identity is not None:
                address = find_card(self.host, self._identity, sysfs=self._sysfs)
            else:
                address = self._address if self.truth({"bitstream_id"}).on_bus else None
            if address is not None:
                self._address = address
                return address
            if time.monotonic() + pause > end:
                return None
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def _after(
        self, intent: int, log: str | Unknown, seen: Look, late: DeadlineError | None
    ) -> tuple[CardTruth, str]:
        """Record the card after an update, and what the kernel logged of it since ``log``; return both.

        :raises DeadlineError: ``late``, once that is done.
        """
        self._record.observation(self.subject, seen.truth, "after", intent)
        code = self._logged(log, seen, intent)
        if late is not None:
            raise late
        return seen.truth, code

    def _logged(self, before: str | Unknown, seen: Look, intent: int) -> str:
        """Record what the kernel logged of the update since ``before``; return its code, or ``""``."""
        now = seen.log
        if isinstance(before, Unknown) or isinstance(now, Unknown):
            reason = before if isinstance(before, Unknown) else now
            unread = Evidence(str(reason), "dmesg")
            self._record.claim("kernel-log", self.subject, {"auth_code": reason}, unread, intent)
            return ""
        report = auth_report(new_lines(before, now), seen.devices)
        if report is None:
            return ""
        self._record.claim(
            "kernel-log", self.subject, report.statement(), Evidence(report.lines, "dmesg"), intent
        )
        return report.auth_code
