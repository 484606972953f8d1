"""What documents say becomes of a StarlingX system with one card, told by recipes; and how it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from harness.scenarios.card_model import CardModel

if TYPE_CHECKING:
    from harness.images.recipes import Recipe

#: The images that a system may be given, of every kind that it knows.
IMAGES: Final = (
    "A/csk0",
    "A/csk0-v2",
    "B/csk0",
    "unsigned",
    "bmc-A/csk0",
    "root-key-A",
    "root-key-B",
    "cancel-A-csk0",
)
#: Labels that a card may be given: key -> value. One without a key stands for all devices.
LABELS: Final = {"site": "lab", "rack": "one"}
EVERYWHERE: Final = ""
#: A value that no image is applied to.
_OTHER: Final = "field"
#: Lab seconds after which an audit has looked at everything that a report did not come of.
AUDITED: Final = 3600 + 301
_ORDER: Final = {"root-key": 0, "cancellation": 1, "update": 2}
Status = Literal["pending", "completed", "failed"]


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that is done to a system. ``name``: what; ``image``, ``label``: to what.

    ``which``: stands for one of what there is, until :meth:`SystemModel.chosen` has chosen it.
    """

    name: str
    image: str = ""
    label: str = ""
    which: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.image, self.label, self.which)))

    @property
    def wear(self) -> int:
        """The updates of cards that it costs at most: every image may be owed at once."""
        return len(IMAGES) if self.name.startswith("update") else 0


class Plan(NamedTuple):
    """What an act is in a scenario file, and how the system is after it."""

    steps: list[Any]
    after: SystemModel


@dataclass(frozen=True, slots=True)
class SystemModel:
    """A system by the documents' rules: fact sheet of StarlingX, sections 2 to 4.

    ``card``: its one card. ``promises``: image that was uploaded -> whether the card takes it, as it was
    told then. ``ties``: (image, label) that it is applied to. ``labels``: of the card. ``states``: image ->
    status, of what the card is owed or was given. ``moved``, ``relabelled``: its address changed, a label
    has two values; each is done once. ``spent``: labels that were taken from the card.
    """

    card: CardModel
    promises: Mapping[str, bool] = field(default_factory=dict)
    ties: frozenset[tuple[str, str]] = frozenset()
    labels: frozenset[str] = frozenset()
    states: Mapping[str, Status] = field(default_factory=dict)
    moved: bool = False
    relabelled: bool = False
    spent: frozenset[str] = frozenset()

    @property
    def recipes(self) -> Mapping[str, Recipe]:
        """The recipes of the images."""
        return self.card.recipes

    def chosen(self, act: Act) -> Act | None:
        """Return an act that names what it is done to; None where there is nothing of that kind."""
        if not act.which:
            return act
        options = {
            "remove": [Act("remove", image, label) for image, label in sorted(self.ties)],
            "delete": [Act("delete", image) for image in sorted(self.promises)],
            "unlabel": [Act("unlabel", label=label) for label in sorted(self.labels)],
        }[act.name]
        return options[int(act.which) % len(options)] if options else None

    def plan(self, act: Act) -> Plan | None:
        """Return what an act is now; None where documents do not say what comes of it."""
        makers = {
            "upload": self._upload,
            "apply": self._apply,
            "remove": self._remove,
            "delete": self._delete,
            "label": self._label,
            "unlabel": self._unlabel,
            "update": self._update,
            "update-remove": self._removed_meanwhile,
            "update-unheard": self._unheard,
            "key": self._keyed,
            "relabel": self._relabel,
            "boot": self._boot,
        }
        if act.name in makers:
            return makers[act.name](act)
        if act.name not in _BOOTING:
            return Plan(_ALONE[act.name], self)
        return (
            None if self.moved else Plan(_ALONE[act.name], replace(self, card=self.card.reset(), moved=True))
        )

    # -- images ---------------------------------------------------------------------------------------

    def _upload(self, act: Act) -> Plan | None:
        if act.image in self.promises:
            return None
        lands = not self.card.code(act.image)
        promise = "lands" if lands else "unchanged"
        step: dict[str, Any] = {"upload": act.image, "promise": promise, "as": _named(act.image)}
        if self.recipes[act.image].content_type == "BMC":
            step["fields"] = {"retimer_included": True}
        return Plan([step], replace(self, promises={**self.promises, act.image: lands}))

    def _apply(self, act: Act) -> Plan | None:
        image, label = act.image, act.label
        if uploaded := self._upload(act):  # what is not there yet is uploaded first
            plan = uploaded.after._apply(act)
            return None if plan is None else Plan([*uploaded.steps, *plan.steps], plan.after)
        if not self._as_promised(image) or label in self.spent:
            return None
        step = _at_label("apply", image, label)
        others = [each for each in self.states if each != image]
        second = self._kind(image) == "root-key" and any(self._kind(each) == "root-key" for each in others)
        if second and self._reaches(label):
            # With a label that was there before a device had it, a part of it is done all the same.
            return Plan([{"refused": [step]}], self) if label == EVERYWHERE else None
        if any(self._rivals(image, each) and each_label != label for each, each_label in self.ties):
            return None  # what becomes of the older one's other labels is not documented
        tied = {(each, at) for each, at in self.ties if not (self._rivals(image, each) and at == label)}
        states = self._owed(image) if self._reaches(label) else dict(self.states)
        return Plan([step], replace(self, ties=frozenset({*tied, (image, label)}), states=states))

    def _owed(self, image: str) -> dict[str, Status]:
        """Return the states once the card is owed an image: what it takes the place of is owed no more."""
        states = {each: status for each, status in self.states.items() if not self._rivals(image, each)}
        was = states.get(image)
        again = was == "failed" and self._kind(image) != "cancellation"
        if was is None or again:
            states[image] = "pending"
        return states

    def _remove(self, act: Act) -> Plan | None:
        if (act.image, act.label) not in self.ties:
            return None
        ties = self.ties - {(act.image, act.label)}
        after = replace(self, ties=ties)
        return Plan([_at_label("remove", act.image, act.label)], after._without_untied())

    def _delete(self, act: Act) -> Plan | None:
        if act.image not in self.promises:
            return None
        step = {"delete": f"${_named(act.image)}"}
        if self.states.get(act.image) == "completed":
            return Plan([{"refused": [step]}], self)
        after = replace(
            self,
            promises={name: lands for name, lands in self.promises.items() if name != act.image},
            ties=frozenset(tie for tie in self.ties if tie[0] != act.image),
        )
        return Plan([step], after._without_untied())

    # -- labels ---------------------------------------------------------------------------------------

    def _label(self, act: Act) -> Plan | None:
        step = {"label": {act.label: LABELS[act.label]}}
        if act.label in self.spent:
            return None
        if act.label in self.labels:
            return Plan([{"refused": [step]}], self)
        coming = [image for image, label in self.ties if label == act.label]
        if any(not self._as_promised(image) for image in coming):
            return None
        for image in coming:
            there = {*self.states, *coming} - {image}
            keys = self._kind(image) == "root-key" and any(self._kind(each) == "root-key" for each in there)
            if keys or any(self._rivals(image, each) for each in there):
                return None  # which of them the card is owed is not documented
        after = replace(self, labels=self.labels | {act.label})
        for image in coming:
            after = replace(after, states=after._owed(image))
        return Plan([step, "look"], after)

    def _relabel(self, act: Act) -> Plan | None:
        """Give a label of the card another value besides, and then the first one again: that is refused."""
        if act.label not in self.labels or self.relabelled:
            return None
        again = {"refused": [{"label": {act.label: LABELS[act.label]}}]}
        return Plan([{"label": {act.label: _OTHER}}, again], replace(self, relabelled=True))

    def _unlabel(self, act: Act) -> Plan | None:
        if act.label not in self.labels:
            return None
        # What becomes of the images that are applied to it is not documented: it is not used any more.
        after = replace(
            self,
            labels=self.labels - {act.label},
            ties=frozenset(tie for tie in self.ties if tie[1] != act.label),
            spent=self.spent | {act.label},
        )
        return Plan([{"unlabel": [act.label]}], after._without_untied())

    # -- hosts ----------------------------------------------------------------------------------------

    def _update(self, act: Act) -> Plan | None:
        after = self._written()
        return None if after is None else Plan(["update"], after)

    def _removed_meanwhile(self, act: Act) -> Plan | None:
        """Remove an image while it is written: that is refused."""
        queue, after = self._queue(), self._written()
        ties = [tie for tie in self.ties if queue and tie[0] == queue[0]]
        if after is None or ties != [(queue[0], EVERYWHERE)]:  # of a label a part of it is done all the same
            return None
        meanwhile = {"at": "programming", "act": [{"refused": [_at_label("remove", *ties[0])]}]}
        return Plan([meanwhile, "update"], after)

    def _unheard(self, act: Act) -> Plan | None:
        """Have one image written that the card refuses, while no word of an agent arrives: it is given up."""
        after = self._written()
        if after is None or len(self._queue()) != 1 or self.promises[self._queue()[0]]:
            return None
        waits = [{"wait": AUDITED}, {"wait": 400}]
        return Plan(
            [{"disturb": "completions"}, "update", *waits, {"disturb": "completions", "value": 0}], after
        )

    def _keyed(self, act: Act) -> Plan | None:
        """Give a new card its root key, and take it from the system again."""
        if self.promises or self.card.root:
            return None
        key = Act("", "root-key-A")
        model, steps = self, list[Any]()
        for part in (self._apply, self._update, self._boot, self._remove, self._delete):
            plan = getattr(model, part.__name__)(key)
            model, steps = plan.after, [*steps, *plan.steps]
        return Plan(steps, model)

    def _queue(self) -> list[str]:
        """Return what the next update writes, in its order."""
        owed = [image for image, status in self.states.items() if status in ("pending", "failed")]
        return sorted(owed, key=lambda image: _ORDER[self._kind(image)])

    def _written(self) -> SystemModel | None:
        """Return what comes of the next update; None where the promises of old do not say it."""
        queue = self._queue()
        card, states = self.card, dict(self.states)
        for at, image in enumerate(queue):
            lands = not card.code(image)
            if lands != self.promises[image]:
                return None
            card = card.begun()
            if lands:
                card, states[image] = card.landed(image), "completed"
                continue
            states[image] = "failed"
            if any(self.promises[left] for left in queue[at + 1 :]):
                return None
            states |= dict.fromkeys(queue[at + 1 :], "pending")
            break
        return replace(self, card=card, states=states) if queue else None

    def _boot(self, act: Act) -> Plan:
        return Plan(["boot"], replace(self, card=self.card.reset()))

    # -- what is so -----------------------------------------------------------------------------------

    def _kind(self, image: str) -> str:
        return self.recipes[image].kind

    def _rivals(self, new: str, old: str) -> bool:
        """Whether one functional image takes the place of another: two for the same part of the card."""
        one, other = self.recipes[new], self.recipes[old]
        functional = one.kind == other.kind == "update"
        return functional and new != old and one.content_type == other.content_type

    def _reaches(self, label: str) -> bool:
        return label == EVERYWHERE or label in self.labels

    def _as_promised(self, image: str) -> bool:
        """Whether the card would take an image now just as it was said when it was uploaded."""
        return image in self.promises and self.promises[image] == (not self.card.code(image))

    def _without_untied(self) -> SystemModel:
        """Return the system without the states of images that are applied to nothing on the card."""
        tied = {image for image, label in self.ties if self._reaches(label)}
        return replace(self, states={image: s for image, s in self.states.items() if image in tied})


_ALONE: Final[Mapping[str, list[Any]]] = {
    "abort": [{"refused": ["abort"]}],
    "wait": [{"wait": 200}],
    "audit": [{"wait": AUDITED}],
    "look": ["look"],
    "restart-services": [{"disturb": "restart"}, "look"],
    "restart-agents": [{"disturb": "agents", "value": False}, {"disturb": "agents", "value": True}, "look"],
    "restart-conductor": [
        {"disturb": "conductor", "value": False},
        {"disturb": "conductor", "value": True},
        "look",
    ],
    "expire-tokens": [{"disturb": "expire-tokens"}, "look"],
    "other-device": [{"refused": [{"upload": "A/csk0", "fields": {"pci_device": "0b31"}}]}],
    "no-uuid": [{"refused": [{"upload": "A/csk0", "fields": {"uuid": "junk"}}]}],
    "move": [{"disturb": "move"}, "boot"],
    "boot-elsewhere": [{"disturb": "boot-elsewhere"}, "boot"],
}

_BOOTING: Final = ("move", "boot-elsewhere")


def _named(image: str) -> str:
    """Return what the result of an image's upload is called in a scenario."""
    return image.replace("/", "-")


def _at_label(step: str, image: str, label: str) -> dict[str, Any]:
    at = {"labels": {label: LABELS[label]}} if label else {}
    return {step: f"${_named(image)}", **at}
