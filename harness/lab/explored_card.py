"""One emulated card in memory beside the model of it: what is done to both, and where they disagree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.emulator.card import Card, CardProfile, CardSpec, CardState
from harness.emulator.clock import LabClock
from harness.images.layout import HEADER_SIZE
from harness.scenarios.card_model import CardModel

if TYPE_CHECKING:
    from harness.images.recipes import Recipe

HOME: Final = "0000:b2:00.0"
AWAY: Final = ("0000:b2:00.0", "0000:b8:00.0")
#: Lab seconds after which any update is over; a reset is, as `rsu` waits.
_UPDATE_SECONDS: Final = 300.0
_RESET_SECONDS: Final = 10.0
_AUTH_RESULT: Final = "RSU auth result: "


class Disagreement(AssertionError):
    """The card is not as the model says."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was done. ``name``: flash, second, cut, cancel, reboot, reset, power-cycle or move.

    ``image``, ``phase``: of an update; ``code``: what the model says that the card answers; ``word``: the
    kind of a reset, or the image of a second updater.
    """

    name: str
    image: str = ""
    phase: str = ""
    code: int = 0
    word: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.image, self.phase, self.word)))


class ExploredCard:
    """A card and its model, from the same beginning; every method does one thing to both, and compares.

    :param images: recipe name -> image. :param roots: root name -> its root entry hash.
    :raises Disagreement: from every method: they differ, and how.
    """

    def __init__(
        self,
        recipes: Mapping[str, Recipe],
        images: Mapping[str, bytes],
        roots: Mapping[str, str],
        profile: CardProfile,
    ) -> None:
        self._images = images
        self._roots = roots
        self._clock = LabClock()
        self._actor = self._clock.actor()
        self._actor.__enter__()
        self._log: list[str] = []
        spec = CardSpec("card0", "64:4c:36:11:1b:a8", (HOME,))
        self._card = Card(spec, CardState(), profile, self._clock, self._log.append)
        self._factory = self._card.bitstream_id
        self.model = CardModel(recipes, HOME)
        self.steps: list[Step] = []

    def close(self) -> None:
        """End the time of the card."""
        self._actor.__exit__(None, None, None)
        self._clock.close()

    def do(self, step: Step) -> None:
        """Do again what was done once; a phase that does not come any more is passed over."""
        acts: dict[str, Callable[[], None]] = {
            "flash": lambda: self.flash(step.image),
            "second": lambda: self.second_updater(step.image, step.word),
            "cut": lambda: self.power_cut(step.image, step.phase),
            "cancel": lambda: self.cancel(step.image, step.phase),
            "reboot": lambda: self.host_reboot(step.image, step.phase),
            "reset": lambda: self.reset(step.word),
            "power-cycle": self.power_cycle,
            "move": self.move,
        }
        acts[step.name]()

    # -- what can be done -----------------------------------------------------------------------------

    def flash(self, image: str) -> None:
        """Update with an image, and wait for its end."""
        code = self._begin("flash", image)
        self._clock.sleep(_UPDATE_SECONDS)
        self._answered(code)
        self._update(image, code, done=True)

    def second_updater(self, image: str, other: str) -> None:
        """Update with an image while another updater wants to begin: that one is told to be busy."""
        code = self._begin("second", image, word=other)
        upload = self._card.upload
        try:
            upload.write_loading(b"1")
            upload.write_data(self._images[other], 0)
            upload.write_loading(b"0")
        except OSError:
            pass
        else:
            raise Disagreement(f"a second update began while {image} was written")
        self._clock.sleep(_UPDATE_SECONDS)
        self._answered(code)
        self._update(image, code, done=True)

    def power_cut(self, image: str, phase: str) -> None:
        """Cut the power in the middle of a phase of an update, and give it again."""
        if phase not in self.model.phases(image):
            return
        self._begin("cut", image, phase)
        self._clock.sleep(self._until(image, phase))
        self._card.power_off()
        self._card.power_on()
        self.model = self.model.begun().cut(phase)
        self._compare()

    def cancel(self, image: str, phase: str) -> None:
        """Cancel an update while it is prepared or transferred."""
        self._begin("cancel", image, phase)
        self._clock.sleep(self._until(image, phase))
        self._card.upload.cancel(b"1")
        self._clock.sleep(_UPDATE_SECONDS)
        if self._card.upload.error() != f"{phase}:user-abort":
            raise Disagreement(f"a cancelled update ended with {self._card.upload.error()!r}")
        self.model = self.model.begun()
        self._compare()

    def host_reboot(self, image: str, phase: str) -> None:
        """Restart the host in the middle of an update: the card goes on with what it has."""
        code = self.model.code(image)
        if phase not in self.model.phases(image):
            return
        self._begin("reboot", image, phase)
        self._clock.sleep(self._until(image, phase))
        self._card.host_restarted()
        self._clock.sleep(_UPDATE_SECONDS)
        self._update(image, code, done=phase not in ("preparing", "transferring"))

    def reset(self, word: str) -> None:
        """Reset the card."""
        self.steps.append(Step("reset", word=word))
        self._card.image_load(word)
        self._clock.sleep(_RESET_SECONDS)
        self.model = self.model.reset()
        self._compare()

    def power_cycle(self) -> None:
        """Cut the power, and give it again."""
        self.steps.append(Step("power-cycle"))
        self._card.power_off()
        self._card.power_on()
        self.model = self.model.reset()
        self._compare()

    def move(self) -> None:
        """Have the card come back at another address from its next reset."""
        address = next(each for each in AWAY if each != self.model.address)
        self.steps.append(Step("move"))
        self._card.moves_to = address
        self.model = self.model.moving(address)
        self._compare()

    # -- both sides -----------------------------------------------------------------------------------

    def _begin(self, name: str, image: str, phase: str = "", word: str = "") -> int:
        code = self.model.code(image)
        self.steps.append(Step(name, image, phase, code, word))
        self._log.clear()
        upload = self._card.upload
        upload.write_loading(b"1")
        upload.write_data(self._images[image], 0)
        upload.write_loading(b"0")
        return code

    def _until(self, image: str, phase: str) -> float:
        """Return the lab seconds from the beginning of an update to the middle of a phase of it."""
        profile, size = self._card.profile, len(self._images[image])
        lasts = {
            "preparing": profile.prepare_seconds,
            "transferring": size / profile.transfer_rate,
            "authenticating": profile.authentication_seconds,
            "copying": (size - HEADER_SIZE) / profile.copy_rate,
            "keys": profile.key_seconds,
        }
        before = ("preparing", "transferring", "authenticating")
        passed = sum(
            lasts[each] for each in before[: before.index(phase) if phase in before else len(before)]
        )
        return passed + lasts[phase] / 2

    def _answered(self, code: int) -> None:
        error = self._card.upload.error()
        logged = [int(line.split()[-1], 16) for line in self._log if line.startswith(_AUTH_RESULT)]
        if (error, logged) != (("programming:hw-error", [code]) if code else ("", [])):
            told = f"{error or 'no error'}, code {[f'{each:#04x}' for each in logged] or 'none'}"
            raise Disagreement(f"the card answers {told}; documents say code {code:#04x}")

    def _update(self, image: str, code: int, *, done: bool) -> None:
        self.model = self.model.begun()
        if done and not code:
            self.model = self.model.landed(image)
        self._compare()

    def _compare(self) -> None:
        """Compare what a real card shows."""
        card, model = self._card, self.model
        found: dict[str, Any] = {
            "address": card.address,
            "bitstream_id": card.bitstream_id if card.address else None,
            "sr_root": card.root_entry_hash("SR"),
            "sr_cancelled": card.cancelled("SR"),
            "flash_count": card.flash_count,
            "status": card.upload.status(),
        }
        due: dict[str, Any] = {
            "address": model.address,
            "bitstream_id": model.bitstream_id(self._factory),
            "sr_root": self._roots[model.root] if model.root else None,
            "sr_cancelled": model.cancelled,
            "flash_count": model.count,
            "status": "idle",
        }
        for name, value in due.items():
            if found[name] != value:
                raise Disagreement(f"{name} is {found[name]!r}, and by the documents {value!r}")
