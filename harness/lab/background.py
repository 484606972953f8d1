"""Labs that stay up in the background: started, found again, stopped; what a killed one left is cleaned."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import ConfigurationError, InfrastructureError
from harness.lab.emulator import Doors, EmulatorProcess, remove_runtime
from harness.lab.running import RunningLab, check_profiles_of
from harness.lab.specification import specification

if TYPE_CHECKING:
    from harness.inventory.model import Inventory, Lab
    from harness.leases.holder import LeaseHolder

#: Where labs are kept, below the directory of their inventory.
LABS = Path(".hil/labs")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_END_SECONDS = 10.0
_POLL_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class BackgroundLab:
    """The place of one lab below the inventory's directory, whether it runs or not.

    ``name``: what it is called; the lab of the inventory unless another name was given.
    """

    directory: Path

    @property
    def name(self) -> str:
        """What it is called."""
        return self.directory.name

    @property
    def state(self) -> Path:
        """Where its cards keep their flash."""
        return self.directory / "state"

    @property
    def log(self) -> Path:
        """What its process said."""
        return self.directory / "log"

    @property
    def _pid_file(self) -> Path:
        return self.directory / "pid"

    @property
    def doors_file(self) -> Path:
        """Where it is written how the lab is reached, with the passwords of its controllers: for us alone."""
        return self.directory / "lab.json"

    def pid(self) -> int | None:
        """Return the process id of the running lab, or None.

        Its process holds a lock on the file for as long as it lives, so that neither an id that was given
        to another process nor a file that was left behind can deceive us.
        """
        try:
            descriptor = os.open(self._pid_file, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._not_to_be_had(error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(os.read(descriptor, 32) or b"0") or None
        finally:
            os.close(descriptor)
        return None

    def runs(self) -> bool:
        """Return whether it runs and can be attached to."""
        return self.pid() is not None and self.doors_file.exists()

    def lab_name(self) -> str:
        """Return the inventory's name of the lab that runs here. :raises ConfigurationError: none does."""
        return str(self._stored()["lab"])

    def doors(self) -> Doors:
        """Return where the running lab is reached. :raises ConfigurationError: it does not run."""
        return Doors.from_json(self._stored())

    def _stored(self) -> dict[str, Any]:
        if not self.runs():
            raise ConfigurationError(f"The lab {self.name!r} is not running.", hint="Start it: hil lab up")
        try:
            found: dict[str, Any] = json.loads(self.doors_file.read_text(encoding="utf-8"))
            if not isinstance(found["lab"], str):
                raise TypeError("the name of its lab is none")
            Doors.from_json(found)
        except OSError as error:
            raise self._not_to_be_had(error) from None
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise InfrastructureError(
                f"{self.doors_file} does not say where the lab {self.name!r} is reached: {error}.",
                hint=f"Stop the lab and start it again: hil lab down {self.name}; hil lab up {self.name}",
            ) from None
        return found

    def up(self, inventory: Inventory, lab_name: str | None = None) -> Doors:
        """Start the lab and leave it running; cards come up in the state that they were left in.

        :raises ConfigurationError: it runs already, or nothing in it is emulated.
        :raises InfrastructureError: its process did not start.
        """
        entry = inventory.lab(lab_name)
        if not any(host.emulated for host in entry.hosts.values()):
            raise ConfigurationError(
                f"No host of the lab {entry.name!r} is emulated; there is nothing to keep running.",
                hint=f"It is described in {inventory.path}.",
            )
        check_profiles_of(inventory, entry)
        spec = specification(inventory, entry)
        with self._exclusively():
            if self.pid() is not None:
                raise ConfigurationError(
                    f"The lab {self.name!r} is running already (process {self.pid()}).",
                    hint="See `hil lab status`, stop it with `hil lab down`, "
                    "or start another one beside it: hil lab up --as NAME",
                )
            self._clean()
            process = EmulatorProcess(spec, state=self.state, pid_file=self._pid_file, log=self.log)
            try:
                self._keep_doors(entry.name, process.doors)
            except BaseException:  # nobody could find the lab: it must not go on
                os.kill(process.doors.pid, signal.SIGTERM)
                process.close()
                raise
            return process.detach()

    def _keep_doors(self, lab: str, doors: Doors) -> None:
        """Write where the lab is reached, for the commands to come; nobody else may read the passwords."""
        content = json.dumps({"lab": lab, **doors.to_json()}, indent=2)
        unfinished = self.doors_file.with_suffix(".new")
        unfinished.unlink(missing_ok=True)  # what a killed command left may be for all to read
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content + "\n")
        unfinished.replace(self.doors_file)

    @contextlib.contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Keep two commands from starting or stopping the same lab at once.

        :raises InfrastructureError: the directory cannot be made or written to, then or later.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with (self.directory / "guard").open("w") as guard:
                fcntl.flock(guard, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise self._not_to_be_had(error) from None

    def _not_to_be_had(self, error: OSError) -> InfrastructureError:
        return InfrastructureError(
            f"The lab {self.name!r} is kept in {self.directory}, and {error.filename or 'a file there'} "
            f"cannot be used: {error.strerror}.",
            hint="The directory of the inventory must be yours, with space on its disk.",
        )

    def attach(self, inventory: Inventory, leases: LeaseHolder | None = None) -> RunningLab:
        """Return the running lab; closing that leaves it running. :raises ConfigurationError: none runs."""
        kept = str(self.directory.resolve())
        return RunningLab(inventory.lab(self.lab_name()), self.doors(), leases=leases, kept=kept)

    def down(self, *, forget: bool = False) -> bool:
        """Stop the lab; return whether it ran. What the cards hold is kept, unless ``forget``.

        :raises InfrastructureError: its process did not end.
        """
        if not self.directory.is_dir():
            return False
        with self._exclusively():
            return self._down(forget)

    def _down(self, forget: bool) -> bool:
        pid = self.pid()
        if pid is not None:
            # Not over its control: where that leads, a damaged record may say wrongly.
            for number in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                if self._gone_within(_END_SECONDS):
                    break
            else:
                raise InfrastructureError(f"The lab {self.name!r} (process {pid}) does not end.")
        self._clean()
        if forget:
            shutil.rmtree(self.directory, ignore_errors=True)
        return pid is not None

    def _gone_within(self, seconds: float) -> bool:
        """Wait for the lock on the pid file; it falls when the process ends, and only then."""
        deadline = time.monotonic() + seconds
        while self.pid() is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _clean(self) -> None:
        """Remove what a lab that does not run any more has left: its socket, its key, the pid file."""
        with contextlib.suppress(FileNotFoundError, ValueError, LookupError, TypeError, AttributeError):
            doors = Doors.from_json(json.loads(self.doors_file.read_text(encoding="utf-8")))
            remove_runtime(doors.runtime)
        self.doors_file.unlink(missing_ok=True)
        self._pid_file.unlink(missing_ok=True)


def background_lab(inventory: Inventory, name: str | None = None) -> BackgroundLab:
    """Return the place of the lab called ``name``, by default the inventory's default lab.

    :raises ConfigurationError: no lab can be called so.
    """
    chosen = inventory.default_lab if name is None else name
    if _NAME.fullmatch(chosen) is None:
        raise ConfigurationError(
            f"{chosen!r} cannot be the name of a lab.", hint="Use letters, digits, '.', '-' and '_'."
        )
    return BackgroundLab(_base(inventory) / chosen)


def known_lab(inventory: Inventory, name: str | None = None) -> BackgroundLab:
    """Return the place of a lab that is in the inventory or was started beside it under another name.

    :raises ConfigurationError: there is none of that name.
    """
    from harness.inventory.entries import unknown_name

    found = background_lab(inventory, name)
    if found.name not in inventory.labs and not found.directory.is_dir():
        others = [lab.name for lab in background_labs(inventory) if lab.name not in inventory.labs]
        raise unknown_name("lab", found.name, [*inventory.labs, *others], str(inventory.path))
    return found


def chosen_lab(inventory: Inventory, name: str | None = None) -> tuple[Lab, BackgroundLab]:
    """Return the lab ``name`` of the inventory, or the one that runs under that name, and where it is kept.

    :raises ConfigurationError: there is neither, or it runs for another inventory.
    """
    if name is None or name in inventory.labs:
        entry = inventory.lab(name)
        return entry, background_lab(inventory, entry.name)
    kept = known_lab(inventory, name)
    if not kept.runs():
        raise ConfigurationError(
            f"The lab {name!r} is not running.", hint=f"Start it: hil lab up LAB --as {name}"
        )
    if kept.lab_name() not in inventory.labs:
        raise ConfigurationError(
            f"The lab {name!r} is none of {inventory.path}.",
            hint="One that replays a recording has an inventory of its own: `hil lab status` shows it.",
        )
    return inventory.lab(kept.lab_name()), kept


def background_labs(inventory: Inventory) -> list[BackgroundLab]:
    """Return every lab that was ever started beside this inventory and not forgotten, by name."""
    base = _base(inventory)
    return [BackgroundLab(path) for path in sorted(base.iterdir()) if path.is_dir()] if base.is_dir() else []


def project_of(inventory: Inventory) -> Path:
    """Return the directory of ``inventory``; where a lab has its inventory with it, the one of its labs."""
    folder = inventory.path.absolute().parent
    return folder.parents[2] if folder.parts[-3:-1] == LABS.parts else folder


def _base(inventory: Inventory) -> Path:
    return project_of(inventory) / LABS
