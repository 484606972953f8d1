"""Runs the vendor's tools on a card's host: finds them, brings the image there, follows what they say."""

from __future__ import annotations

import posixpath
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from harness.cards.eras import RESETTER, Place, find_place, left_over
from harness.cards.gate import CHANGED, CHANGED_MARK, EXCHANGED, EXCHANGED_MARK, Gate
from harness.cards.looking import Look
from harness.cards.tool_output import Progress, ToolOutput, without_pid
from harness.errors import HarnessError, InfrastructureError, LinkLostError, RefusedError
from harness.hosts.permits import Permit
from harness.hosts.protocol import Asked, CommandResult, Host
from harness.leases.hold import check_begun


@dataclass(slots=True)
class OnHost:
    """An image that is on a host for a while: where, and the SHA-256 of what arrived there.

    ``seen``: the card when the image was removed again; None where it could not be looked at then.
    """

    path: str
    sha256: str
    seen: Look | None = None


class ToolRunner:
    """The tools on one host, for one card.

    :param name: the card's, for messages. :param address: says where it is now. :param card: what tells it
        from others on this host.
    :param tools: tool or engine -> name or path on the host. :param upload_dir: folder there for images.
    :param abandoned: called where the harness stops waiting for a tool that still runs.
    """

    def __init__(
        self,
        host: Host,
        gate: Gate,
        name: str,
        *,
        address: Callable[[], str],
        card: Callable[[], str],
        tools: Mapping[str, str],
        upload_dir: str,
        abandoned: Callable[[], object],
    ) -> None:
        self._host = host
        self._gate = gate
        self._name = name
        self._address = address
        self._card = card
        self._tools = dict(tools)
        self._upload_dir = upload_dir
        self._abandoned = abandoned
        self._place: Place | None = None
        self._following: ToolOutput | None = None
        #: The phase that the tool of the last run announced last.
        self.phase = ""

    @property
    def pid(self) -> int | None:
        """The process id of the tool that runs now, or of the engine's client that runs it."""
        return self._following.pid if self._following is not None else None

    def place(self, container: str = "") -> Place:
        """Return where the host has the tools, found by looking once.

        :param container: the name that a container of the next run takes: what an earlier one left of that
            name is removed, as StarlingX does it.
        """
        if self._place is None:
            self._place = find_place(self._host, self._tools)
        place = self._place
        if container and (listing := place.containers()):
            listed = self._host.run(listing)
            if listed.exit_code == 0 and left_over(listed.stdout, container):
                permit = self._gate.clear(container, place)
                self._host.run(permit.argv, permit=permit)
        return place

    @contextmanager
    def on_host(
        self, content: bytes, look: Callable[[Permit], Look | None], folder: str = ""
    ) -> Iterator[OnHost]:
        """Put an image on the host for a while.

        :param look: carries out the permit to remove it, and may look at the card as it does so.
        """
        folder = folder or self._upload_dir
        ours = posixpath.join(folder, f"hil-{re.sub('[^0-9a-f]', '', self._card().lower())}-")
        path = f"{ours}{secrets.token_hex(8)}.bin"
        upload = self._gate.upload(content, path)
        try:
            self._host.put(content, path, permit=upload)
            there = OnHost(path, self._arrived(path, f"{ours}*.bin"))
            yield there
        except BaseException:
            with suppress(HarnessError):
                remove = self._gate.remove(path)
                self._host.run(remove.argv, permit=remove, deadline=10.0)
            raise
        there.seen = look(self._gate.remove(path))

    def _arrived(self, path: str, ours: str) -> str:
        """Return the SHA-256 of the image that has arrived at ``path``; remove those of ``ours`` beside it.

        Runs that were killed have left them. The card is ours now: nobody else has any use for them.
        """
        summed, *listed = self._host.run_all(
            [Asked(["sha256sum", path]), Asked(["ls", "-d", ours])], deadline=120.0
        )
        check_begun(self._host, summed, self._name, self._address())
        for left in listed[0].stdout.split() if listed else ():
            if left != path:
                remove = self._gate.remove(left)
                self._host.run(remove.argv, permit=remove)
        return summed.stdout.split(" ", 1)[0].lstrip("\\") if summed.exit_code == 0 else ""

    def run(
        self,
        permit: Permit,
        deadline: float,
        on_progress: Callable[[Progress], None] | None = None,
        at_phase: Callable[[str], None] | None = None,
        *,
        by_blocks: bool = False,
    ) -> CommandResult:
        """Run a tool under the exclusive hold, following what it prints.

        Where the harness stops waiting (deadline, Ctrl-C) the tool is asked to end: nothing is left
        running that nobody follows.

        :param by_blocks: the card's driver takes an update block by block (generation A).
        """
        follow = ToolOutput(by_blocks=by_blocks)

        def on_output(text: str) -> None:
            for progress in follow.feed(text):
                if on_progress is not None:
                    on_progress(progress)
                if at_phase is not None and progress.percent is None:
                    at_phase(progress.phase)

        self._following = follow
        try:
            result = self._host.run(permit.argv, permit=permit, deadline=deadline, on_output=on_output)
        except BaseException as error:
            if follow.pid is not None and not isinstance(error, LinkLostError):
                with suppress(HarnessError):
                    self._abandoned()
            raise
        finally:
            self._following = None
            self.phase = follow.phase
        self._check_begun(result)
        if result.lost:
            raise LinkLostError(
                f"The link to {self._host.name} broke while {permit.act} of {self._name} ran; the last that "
                f"was seen of it: {without_pid(result.text).rstrip()[-200:]!r}.",
                hint="Bring the host back and look at the card; the tool may have gone on.",
            )
        return result

    def report(self, topic: str) -> CommandResult:
        """Have `fpgainfo` show ``topic`` of the card."""
        place = self.place(RESETTER)
        if place.era == "host":
            result = self._host.run(["fpgainfo", topic, self._address()])
        else:
            permit = self._gate.report(topic, self._address(), place)
            result = self._host.run(permit.argv, permit=permit)
        self._check_begun(result)
        return result

    def _check_begun(self, result: CommandResult) -> None:
        if result.exit_code == CHANGED and CHANGED_MARK in result.stderr:
            raise RefusedError(
                f"The image on {self._host.name} was changed just before it was to be flashed to "
                f"{self._name}; nothing was flashed.",
                hint="Something else writes to the upload folder; give it one of its own (`upload_dir`).",
            )
        if result.exit_code == EXCHANGED and EXCHANGED_MARK in result.stderr:
            raise RefusedError(
                f"Just before it was to be written to, {self._name} was no longer what stands at "
                f"{self._address()}; nothing was changed.",
                hint="Cards change their places when a bus is scanned anew: look where it is, and try again.",
            )
        try:
            check_begun(self._host, result, self._name, self._address())
        except InfrastructureError:
            self._place = None  # what was found may have gone since
            raise
