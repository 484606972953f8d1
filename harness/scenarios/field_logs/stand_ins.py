"""What stands in a draft for things of the field: recipes, a lab's systems and cards, a release."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.scenarios.field_logs.acts import Act
from harness.scenarios.field_logs.draft import OPEN, safe
from harness.scenarios.field_logs.events import Event, Happened, Told
from harness.scenarios.field_logs.moments import told_moment
from harness.scenarios.field_logs.reading import FieldLog

if TYPE_CHECKING:
    from harness.images.recipes import Recipe
    from harness.inventory.model import Inventory, Lab

#: Until when (year and month) a release is the newest of those that are emulated (fact sheet of StarlingX,
#: section 0.1; releases 6.0, 8.0 and 9.0).
_RELEASES: Final = (("2021-12", "stx-2020-07"), ("2023-02", "stx-6"), ("2024-02", "stx-8"))
_NEWEST: Final = "head"


@dataclass(frozen=True, slots=True)
class StandIn:
    """A recipe that can stand for an image of the field. ``csk``: id of its key; None: it is not signed."""

    name: str
    csk: int | None = None
    bitstream_id: int | None = None
    bmc: bool = False


#: Where no recipes are at hand: those that come with the harness.
_OWN: Final = (
    StandIn("A/csk0", 0, 0x23000410010311),
    StandIn("A/csk1", 1, 0x23000410010312),
    StandIn("report/11", 1, 0x11),
    StandIn("unsigned", None, 0x23000410010315),
    StandIn("report/2", None, 0x2),
    StandIn("bmc-A/csk0", 0, bmc=True),
)


def stand_ins(recipes: Mapping[str, Recipe] | None) -> tuple[StandIn, ...]:
    """Return the recipes that can stand for images of the field: sound ones, signed by root A or unsigned."""
    if recipes is None:
        return _OWN
    sound = (
        recipe
        for recipe in recipes.values()
        if recipe.kind == "update" and recipe.damage is None and recipe.swapped_from is None
        and recipe.csk_signer is None and (recipe.unsigned or _is_of_root_a(recipe))
    )  # fmt: skip
    found = tuple(
        StandIn(recipe.name, recipe.csk, recipe.bitstream_id, recipe.bmcfw_version is not None)
        for recipe in sound
    )
    return found or _OWN


def _is_of_root_a(recipe: Recipe) -> bool:
    return recipe.root is not None and recipe.root.name == "A" and recipe.csk is not None


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is uploaded in a draft, or flashed. ``fields``: what the system is told beside its bytes."""

    recipe: str
    fields: Mapping[str, Any]
    comments: tuple[str, ...]


class Images:
    """Chooses recipes for the images of a log: for each another one, while there are some."""

    def __init__(self, known: Iterable[StandIn]) -> None:
        self._known = tuple(known)
        self._taken: set[str] = set()

    def uploaded(self, act: Act, row: Told | None) -> Chosen:
        """Return what stands for an image that was uploaded; ``row``: how a table shows it."""
        shown = row.claim.statement if row is not None else {}
        kind = act.words[1] if len(act.words) > 1 else str(shown.get("bitstream_type") or "functional")
        file = act.words[0].rpartition("/")[2] if act.words else ""
        ident = act.options.get("bitstream-id") or str(shown.get("bitstream_id") or "")
        if kind == "root-key":
            return self._key(
                "root-key-A", f"the root key that {file or 'the image'} programs; root A stands for it"
            )
        if kind == "key-revocation":
            number = act.options.get("revoke-key-id") or str(shown.get("revoke_key_id"))
            name = f"cancel-A-csk{number}" if number in ("0", "1") else "cancel-A-csk0"
            return self._key(name, f"the revocation itself (its key id: {number}); {name} stands for it")
        bmc = "bmc" in act.options or shown.get("bmc") is True
        chosen, signed = self._choose(file, ident, bmc=bmc)
        fields: dict[str, Any] = {"filename": safe(file)} if file else {}
        number_of = _number(ident)
        if number_of is not None and number_of == chosen.bitstream_id:
            fields["bitstream_id"] = ident
        name = act.options.get("name") or shown.get("name", "")
        if name is None or name:
            fields["name"] = None if name is None else safe(str(name))
        what = f"bitstream_id {ident}" if ident else "its id is not said"
        return Chosen(
            chosen.name,
            fields,
            (f"{OPEN}: the image itself ({what}); {chosen.name}, {signed}, stands for it",),
        )

    def flashed(self, file: str) -> Chosen:
        """Return what stands for an image that was flashed, by the name of its file."""
        name = file.rpartition("/")[2]
        if re.search(r"root[-_]?(?:key|hash)|rkh", name, re.IGNORECASE):
            return self._key("root-key-A", f"the root key that {name} programs; root A stands for it")
        if re.search(r"cancel|revo[ck]", name, re.IGNORECASE):
            return self._key("cancel-A-csk0", f"the cancellation in {name}; cancel-A-csk0 stands for it")
        chosen, signed = self._choose(name, "", bmc="bmc" in name.lower())
        told = f"the image itself ({name or 'its file is not said'}); {chosen.name}, {signed}, stands for it"
        return Chosen(chosen.name, {}, (f"{OPEN}: {told}",))

    def _key(self, name: str, what: str) -> Chosen:
        return Chosen(name, {}, (f"{OPEN}: {what}",))

    def _choose(self, file: str, ident: str, *, bmc: bool) -> tuple[StandIn, str]:
        """Return the recipe that is likest, and in words how it is signed and why."""
        unsigned = re.search(r"unsigned", file, re.IGNORECASE)
        said = re.search(r"signed|ssl|csk", file, re.IGNORECASE)
        key = re.search(r"csk[-_]?(\d{1,3})", file, re.IGNORECASE)
        fitting = [each for each in self._known if each.bmc == bmc and (each.csk is None) == bool(unsigned)]
        fitting = fitting or [each for each in self._known if each.bmc == bmc] or list(self._known)
        wanted = int(key[1]) if key else None

        def unlike(each: StandIn) -> tuple[bool, bool, bool]:
            same = _number(ident) is not None and each.bitstream_id == _number(ident)
            return each.name in self._taken, not same, wanted is not None and each.csk != wanted

        chosen = min(fitting, key=unlike)
        self._taken.add(chosen.name)
        if unsigned:
            return chosen, "unsigned as its file's name says"
        why = "signed as its file's name says" if said else "signed, which is assumed"
        return chosen, f"{why} (by root A, CSK {chosen.csk})" if chosen.csk is not None else why


def _number(ident: str) -> int | None:
    """Return an id as the number that cards show: hexadecimal, also without a prefix."""
    try:
        return int(ident, 16)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Offer:
    """What a lab has for a draft. ``systems``: name of a system, or of a subcloud -> its first card.

    ``addresses``: card -> where it is. ``controller``: empty for a system by itself.
    """

    lab: str
    controller: str
    systems: Mapping[str, str]
    addresses: Mapping[str, str]


#: Where no inventory is at hand: the emulated lab that comes with the harness.
_OWN_CLOUD: Final = Offer(
    "emulated",
    "system-controller",
    {f"subcloud{n}": f"subcloud{n}/card0" for n in range(1, 5)},
    {f"subcloud{n}/card0": "0000:b2:00.0" if n < 3 else "0000:b4:00.0" for n in range(1, 5)},
)
_OWN_SYSTEM: Final = Offer(
    "device-images", "", {"standard": "worker/card0"}, {"worker/card0": "0000:b2:00.0"}
)


def cloud_offered(inventory: Inventory | None, wanted: Iterable[str]) -> Offer:
    """Return the cloud that has most of the subclouds that are wanted; that of the default lab first."""
    if inventory is None:
        return _OWN_CLOUD
    names = set(wanted)
    labs = sorted(inventory.labs.values(), key=lambda lab: lab.name != inventory.default_lab)
    clouds = [
        Offer(lab.name, central, *_cards(lab, [n for n, c in lab.controllers.items() if c.parent == central]))
        for lab in labs
        for central, controller in lab.controllers.items()
        if any(other.parent == central for other in lab.controllers.values())
        and controller.emulated is not None
    ]
    return max(clouds, key=lambda o: (len(names & set(o.systems)), len(o.systems)), default=_OWN_CLOUD)


def system_offered(inventory: Inventory | None) -> Offer:
    """Return the first emulated system by itself that has a card."""
    if inventory is None:
        return _OWN_SYSTEM
    for lab in inventory.labs.values():
        parents = {c.parent for c in lab.controllers.values()}
        for name, controller in lab.controllers.items():
            alone = controller.parent is None and name not in parents and controller.emulated is not None
            systems, addresses = _cards(lab, [name])
            if alone and systems[name]:
                return Offer(lab.name, "", systems, addresses)
    return _OWN_SYSTEM


def _cards(lab: Lab, names: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    systems, addresses = dict.fromkeys(names, ""), {}
    for host in lab.hosts.values():
        for card in host.cards.values():
            if host.system in systems:
                placed = f"{host.name}/{card.name}"
                systems[host.system] = systems[host.system] or placed
                addresses[placed] = card.address
    return systems, addresses


def release_of(log: FieldLog) -> tuple[str, str]:
    """Return the emulated release that is likest to that of a log, and in words why."""
    for told in log.of(Told):
        statement = told.claim.statement
        if "bitstream_type" in statement and "bmc" not in statement and "applied" in statement:
            return _RELEASES[0][
                1
            ], f"Image lists without the column bmc, as before November 2021 ({told.place})"
    dated = _dated(log)
    if dated is None:
        return _NEWEST, f"{OPEN}: the release; {_NEWEST} is assumed"
    day, event = dated
    found = next((name for until, name in _RELEASES if day < until), _NEWEST)
    return found, f"{OPEN}: the release; {found} is of that time: {day} ({event.place})"


def _dated(log: FieldLog) -> tuple[str, Event] | None:
    for event in log.events:
        if isinstance(event, Happened) and event.what == "dated":
            return event.detail, event
        if event.time is not None and "year" not in event.assumed:
            return told_moment(event.time)[:10], event
    return None
