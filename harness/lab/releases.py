"""Another release or other defects for the emulated systems of a lab than its inventory gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from harness.inventory.model import Inventory

_WHERE = "the emulated systems (`hil defects list`)"


@dataclass(frozen=True, slots=True)
class Release:
    """What an emulated system is: a release, with defects besides its own, and without some of them.

    ``name``: None leaves the release as it is.
    """

    name: str | None = None
    defects: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether it says anything."""
        return bool(self.name or self.defects or self.without)

    def then(self, later: Release) -> Release:
        """Return what holds where ``later`` has the last word: another release is one as it was released."""
        if later.name is not None:
            return later
        return Release(
            self.name,
            (*(name for name in self.defects if name not in later.without), *later.defects),
            (*(name for name in self.without if name not in later.defects), *later.without),
        )

    def to_json(self) -> dict[str, Any]:
        """Return what it says, for records of a run."""
        said = {"release": self.name, "defects": list(self.defects), "without_defects": list(self.without)}
        return {key: value for key, value in said.items() if value}

    def check(self) -> None:
        """:raises ConfigurationError: there is no such release or defect; the hint has the nearest."""
        if not self:
            return
        from harness.emulator.starlingx.defects import DEFECTS, RELEASES
        from harness.inventory.entries import unknown_name

        if self.name is not None and self.name not in RELEASES:
            raise unknown_name("release", self.name, list(RELEASES), _WHERE)
        for name in (*self.defects, *self.without):
            if name not in DEFECTS:
                raise unknown_name("known defect", name, list(DEFECTS), _WHERE)


#: What users would want, and no system is.
CORRECTED: Final = Release("corrected")


def released(inventory: Inventory, lab_name: str | None, release: Release) -> Inventory:
    """Return the inventory with the emulated systems of a lab as ``release`` says.

    Real ones are what they are.

    :raises ConfigurationError: there is no such lab, release or defect.
    """
    release.check()
    if not release:
        return inventory
    lab = inventory.lab(lab_name)
    controllers = dict(lab.controllers)
    for name, controller in lab.controllers.items():
        if (entry := controller.emulated) is not None:
            now = Release(entry.release, entry.defects, entry.corrected_defects).then(release)
            said = {"release": now.name, "defects": now.defects, "corrected_defects": now.without}
            controllers[name] = controller.model_copy(update={"emulated": entry.model_copy(update=said)})
    own = lab.model_copy(update={"controllers": controllers})
    return inventory.model_copy(update={"labs": dict(inventory.labs) | {lab.name: own}})
