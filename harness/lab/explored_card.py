"""One emulated card in memory beside the model of it: what is done to both, and where they disagree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from harness.emulator.card import Card, CardProfile, CardSpec, CardState
from harness.emulator.clock import LabClock
from harness.images.layout import HEADER_SIZE
from harness.scenarios.card_model import CardModel, Step
from harness.scenarios.exploration import Disagreement

if TYPE_CHECKING:
    from harness.images.recipes import Recipe

HOME: Final = "0000:b2:00.0"
AWAY: Final = ("0000:b2:00.0", "0000:b8:00.0")
#: Lab seconds after which any update is over; a reset is, as `rsu` waits.
_UPDATE_SECONDS: Final = 300.0
_RESET_SECONDS: Final = 10.0
_AUTH_RESULT: Final = "RSU auth result: "


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

    @property
    def updates(self) -> int:
        """Updates that began."""
        return self.model.count

    def do(self, step: Step) -> None:
        """Take a step; a phase that does not come is passed over."""
        after = self.model.after(step)
        if after is None:
            return
        step = step.answered(self.model.code(step.image) if step.image else 0)
        self.steps.append(step)
        _ACTS[step.name](self, step)
        self.model = after
        self._compare()

    # -- what can be done -----------------------------------------------------------------------------

    def flash(self, step: Step) -> None:
        """Update with an image, and wait for its end."""
        self._begin(step)
        self._clock.sleep(_UPDATE_SECONDS)
        self._answered(step.code)

    def second_updater(self, step: Step) -> None:
        """Update with an image while another updater wants to begin: that one is told to be busy."""
        self._begin(step)
        upload = self._card.upload
        try:
            upload.write_loading(b"1")
            upload.write_data(self._images[step.word], 0)
            upload.write_loading(b"0")
        except OSError:
            pass
        else:
            raise Disagreement(f"a second update began while {step.image} was written")
        self._clock.sleep(_UPDATE_SECONDS)
        self._answered(step.code)

    def power_cut(self, step: Step) -> None:
        """Cut the power in the middle of a phase of an update, and give it again."""
        self._begin(step)
        self._clock.sleep(self._until(step.image, step.phase))
        self.power_cycle(step)

    def cancel(self, step: Step) -> None:
        """Cancel an update while it is prepared or transferred."""
        self._begin(step)
        self._clock.sleep(self._until(step.image, step.phase))
        self._card.upload.cancel(b"1")
        self._clock.sleep(_UPDATE_SECONDS)
        if self._card.upload.error() != f"{step.phase}:user-abort":
            raise Disagreement(f"a cancelled update ended with {self._card.upload.error()!r}")

    def host_reboot(self, step: Step) -> None:
        """Restart the host in the middle of an update: the card goes on with what it has."""
        self._begin(step)
        self._clock.sleep(self._until(step.image, step.phase))
        self._card.host_restarted()
        self._clock.sleep(_UPDATE_SECONDS)

    def reset(self, step: Step) -> None:
        """Reset the card."""
        self._card.image_load(step.word)
        self._clock.sleep(_RESET_SECONDS)

    def power_cycle(self, step: Step) -> None:
        """Cut the power, and give it again."""
        self._card.power_off()
        self._card.power_on()

    def move(self, step: Step) -> None:
        """Have the card come back at another address from its next reset."""
        self._card.moves_to = step.word

    # -- both sides -----------------------------------------------------------------------------------

    def _begin(self, step: Step) -> None:
        self._log.clear()
        upload = self._card.upload
        upload.write_loading(b"1")
        upload.write_data(self._images[step.image], 0)
        upload.write_loading(b"0")

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


_ACTS: Final[Mapping[str, Callable[[ExploredCard, Step], None]]] = {
    "flash": ExploredCard.flash,
    "second": ExploredCard.second_updater,
    "cut": ExploredCard.power_cut,
    "cancel": ExploredCard.cancel,
    "reboot": ExploredCard.host_reboot,
    "reset": ExploredCard.reset,
    "power-cycle": ExploredCard.power_cycle,
    "move": ExploredCard.move,
}
