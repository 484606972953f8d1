"""Another release or other defects for the emulated parts of a lab than its inventory gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from harness.inventory.model import Inventory

_WHERE = "emulated labs (`hil defects list`)"


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
        from harness.inventory.entries import unknown_name
        from harness.lab.known_defects import known_defects, known_releases

        if self.name is not None and self.name not in known_releases():
            raise unknown_name("release", self.name, known_releases(), _WHERE)
        known = [defect["name"] for defect in known_defects()]
        for name in (*self.defects, *self.without):
            if name not in known:
                raise unknown_name("known defect", name, known, _WHERE)

    def of_systems(self) -> Release:
        """Return what of it concerns the systems; defects of cards, tools, registries and clients do not."""
        from harness.lab.defective import OF_EQUIPMENT

        defects, without = (
            tuple(name for name in names if name not in OF_EQUIPMENT)
            for names in (self.defects, self.without)
        )
        return Release(self.name, defects, without)


#: What users would want, and no system is.
CORRECTED: Final = Release("corrected")


def released(inventory: Inventory, lab_name: str | None, release: Release) -> Inventory:
    """Return the inventory with the emulated parts of a lab as ``release`` says.

    Real ones are what they are.

    :raises ConfigurationError: there is no such lab, release or defect.
    """
    release.check()
    if not release:
        return inventory
    from harness.lab.defective import defective

    lab = defective(inventory.lab(lab_name), release.defects, release.without)
    controllers = dict(lab.controllers)
    for name, controller in lab.controllers.items():
        if (entry := controller.emulated) is not None:
            now = Release(entry.release, entry.defects, entry.corrected_defects).then(release.of_systems())
            said = {"release": now.name, "defects": now.defects, "corrected_defects": now.without}
            controllers[name] = controller.model_copy(update={"emulated": entry.model_copy(update=said)})
    own = lab.model_copy(update={"controllers": controllers})
    return inventory.model_copy(update={"labs": dict(inventory.labs) | {lab.name: own}})
