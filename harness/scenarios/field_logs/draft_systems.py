"""Drafts scenarios about device images: of one system, or of a cloud with its orchestrations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from harness.faults.actions import moved_address
from harness.scenarios.field_logs.acts import Act, Label, acts_of, carried_labels
from harness.scenarios.field_logs.contradictions import contradictions, rows_of
from harness.scenarios.field_logs.draft import OPEN, Draft, DraftStep, cited, safe
from harness.scenarios.field_logs.events import CENTRAL, Command, Event, Happened, Told
from harness.scenarios.field_logs.reading import FieldLog
from harness.scenarios.field_logs.stand_ins import Images, Offer, release_of

#: Acts that take no more than their name.
_PLAIN: Final = ("update", "abort", "lock", "unlock")
_STRATEGIES: Final = ("create-strategy", "apply-strategy", "abort-strategy", "delete-strategy")


@dataclass
class SystemDrafter:
    """Turns what was done to systems into steps. ``offer.controller``: empty where it is one system alone."""

    log: FieldLog
    images: Images
    offer: Offer
    draft: Draft
    #: Name in the field -> name in the lab.
    names: dict[str, str] = field(default_factory=dict)
    _results: dict[str, str] = field(default_factory=dict)
    _last: str = ""
    _labels: dict[str, set[Label]] = field(default_factory=dict)
    _moved: dict[str, Act] = field(default_factory=dict)
    _options: Mapping[str, str] = field(default_factory=dict)
    _strategy: bool = False

    @property
    def _cloud(self) -> bool:
        return bool(self.offer.controller)

    def run(self) -> None:
        """Draft all steps, the states of cards before them, and what is expected."""
        acts = acts_of(self.log)
        self._name_systems(acts)
        if not any(act.kind == "apply" for act in acts):
            acts = [*acts, *self._from_rows(acts)]
        for act in acts:
            self._step(act)
        self._cards()
        if not self.draft.steps or self.draft.steps[-1].step != "audit-cloud":
            last = "audit-cloud" if self._cloud else "look"
            self.draft.add(last, "What is said at last is held to the cards.")
        self._given()
        self.draft.state(contradictions(self.log))

    # -- before the steps -----------------------------------------------------------------------------

    def _name_systems(self, acts: Iterable[Act]) -> None:
        spoken = dict.fromkeys(act.system for act in acts)
        spoken |= dict.fromkeys(told.system for told in self.log.of(Told))
        fielded = [name for name in spoken if name and name != CENTRAL] if self._cloud else []
        free = [name for name in self.offer.systems if name not in fielded]
        for name in fielded:
            stand_in = name if name in self.offer.systems else next(iter(free), "")
            if stand_in in free:
                free.remove(stand_in)
            if not stand_in:
                self.draft.open.append(
                    f"{name}: the lab {self.offer.lab} has no subcloud left to stand for it"
                )
            elif stand_in != name:
                self.draft.open.append(f"{name} is no subcloud of the lab; {stand_in} stands for it")
            self.names[name] = stand_in

    def _given(self) -> None:
        release, why = release_of(self.log)
        self.draft.given = {"lab": self.offer.lab}
        if not self._cloud:
            self.draft.given["system"] = next(iter(self.offer.systems))
        self.draft.given["release"] = {"name": release}
        self.draft.given_comments.append(f"{why}.")
        self.draft.expect_comments.append(
            f"What else {release} says falsely (`hil defects list`) is not in the files, and is not stated "
            "here: add what `hil run` finds beside."
        )

    def _cards(self) -> None:
        """Put before all other steps in which state the cards were."""
        steps: list[DraftStep] = []
        for event in self.log.of(Happened):
            card = self._card(event.subject)
            if event.what == "root-key" and card:
                told = f"Its card had a root key: {cited(event)}. {OPEN}: which one; root A is assumed."
                steps.append(DraftStep({"card-of-cloud": card, "root": "A"}, (told,)))
        for system, act in self._moved.items():
            if card := self._card(system):
                told = (
                    f"The same label was given again ({cited(act.command)}): it was lost, as where a "
                    f"card comes back at another address. {OPEN}: at which; it is assumed."
                )
                moved = moved_address(self.offer.addresses[card])
                steps.append(DraftStep({"card-of-cloud": card, "boots_at": moved}, (told,)))
        seen: set[str] = set()
        kept = [s for s in steps if not (str(s.step) in seen or seen.add(str(s.step)))]  # type: ignore[func-returns-value]
        self.draft.steps[:0] = kept

    def _card(self, system: str) -> str:
        return self.offer.systems.get(self.names.get(system, system), "") if self._cloud else ""

    def _from_rows(self, acts: Iterable[Act]) -> Iterable[Act]:
        """Yield acts that bring about what tables show, where the log has no commands of them."""
        rows = rows_of(self.log)
        whole = rows.get(CENTRAL) or next(iter(rows.values()), {})
        if not whole:
            return
        labelled = {(act.system, label) for act in acts if act.kind == "label" for label in act.labels}
        self.draft.open.append(
            "the commands: what follows brings about what the tables show, in an assumed order"
        )
        shown = next(iter(whole.values()))
        command = Command(place=shown.place, time=shown.time, words=(), text="", system="")
        for system, labels in carried_labels(self.log).items():
            for label in sorted(labels):
                if system and system != CENTRAL and (system, label) not in labelled:
                    yield Act("label", replace(command, system=system), ("", "", "=".join(label)))
        for uuid, told in whole.items():
            shown_labels = told.claim.statement.get("applied_labels")
            labels_of_row = shown_labels if isinstance(shown_labels, tuple) else ()
            applied = told.claim.statement.get("applied") is True
            own = replace(command, place=told.place, time=told.time, system=told.system)
            yield Act("upload", own, (), {"uuid": uuid})
            if applied:
                yield Act("apply", own, (uuid, *("=".join(label) for label in labels_of_row)))
                if self._cloud:
                    yield Act("apply-strategy", replace(own, system=CENTRAL))

    # -- steps ----------------------------------------------------------------------------------------

    def _step(self, act: Act) -> None:
        if act.kind in _STRATEGIES:
            self._on_strategy(act)
        elif act.kind == "upload":
            self._upload(act)
        elif act.kind in ("apply", "remove", "delete"):
            self._on_image(act)
        elif act.kind == "label":
            self._label(act)
        elif act.kind == "unlabel" and len(act.words) > 2:
            self._labels.setdefault(act.system, set()).clear()
            self._put(act, {"unlabel": [safe(word) for word in act.words[2:]]})
        elif act.kind in _PLAIN:
            self._put(act, act.kind)

    def _put(self, act: Act, step: Any, *comments: str) -> None:
        """Add a step where it was taken: on the system by itself, the system controller, or a subcloud."""
        told = (
            f"{cited(act.command)}: {act.command.text}" if act.command.text else cited(act.command),
            *comments,
        )
        of_central = act.system in (CENTRAL, "") and act.kind in ("upload", "apply", "remove", "delete")
        if not self._cloud or of_central:
            self.draft.add(step, *told)
            return
        name = self.names.get(act.system, "")
        if not name:
            first = next(iter(self.offer.systems), "")
            name, why = first, f"{OPEN}: which subcloud it was on; {first} is assumed."
            told = (*told, why)
        self.draft.add({"subcloud": name, "do": [step]}, *told)

    def _upload(self, act: Act) -> None:
        row = self._row_of(act)
        chosen = self.images.uploaded(act, row)
        name = f"image{len(set(self._results.values())) + 1}"
        self._last = name
        uuid = act.options.get("uuid") or (str(row.claim.statement["uuid"]) if row is not None else "")
        self._results[uuid or name] = name
        step = {
            "upload": chosen.recipe,
            **({"fields": dict(chosen.fields)} if chosen.fields else {}),
            "as": name,
        }
        self._put(act, step, *chosen.comments)

    def _row_of(self, act: Act) -> Told | None:
        """Return how a table shows an image that was uploaded, by its uuid or its id."""
        rows = [row for rows in rows_of(self.log).values() for row in rows.values()]
        for key, option in (("uuid", "uuid"), ("bitstream_id", "bitstream-id")):
            wanted = act.options.get(option)
            found = [row for row in rows if wanted and row.claim.statement.get(key) == wanted]
            found = [row for row in found if row.system in (act.system, CENTRAL)] or found
            if found:
                return found[0]
        return None

    def _on_image(self, act: Act) -> None:
        uuid = act.words[0] if act.words else ""
        comments = []
        if uuid not in self._results and self._known(uuid):
            self._upload(Act("upload", act.command, (), {"uuid": uuid}))
            comments.append(f"{OPEN}: when it was uploaded.")
        name = self._results.get(uuid, self._last)
        if not name:
            self._upload(Act("upload", act.command, ("", "functional")))
            name = self._last
            self._results[uuid] = name
            comments.append(f"{OPEN}: when and as what it was uploaded.")
        elif uuid not in self._results:
            self._results[uuid] = name
            comments.append(f"{OPEN}: which image {uuid[:36]} is; the one that was uploaded last is assumed.")
        step: dict[str, Any] = {act.kind: f"${name}"}
        labels = {safe(key): safe(value) for key, value in act.labels}
        if act.kind != "delete" and labels:
            step["labels"] = labels
        if len(labels) < len(act.labels):
            comments.append(
                f"{OPEN}: it was said for one key with several values; a step takes the last of them."
            )
        self._put(act, step, *comments)

    def _known(self, uuid: str) -> bool:
        return any(uuid in rows for rows in rows_of(self.log).values())

    def _label(self, act: Act) -> None:
        before = self._labels.setdefault(act.system, set())
        labels = {safe(key): safe(value) for key, value in act.labels}
        if not labels:
            return
        comments = []
        if before & set(act.labels):
            if self._cloud:
                self._moved.setdefault(act.system, act)
            else:
                comments.append(
                    f"{OPEN}: how the label was lost that is given again; it may be refused here."
                )
        before.update(act.labels)
        address = act.words[1] if len(act.words) > 1 else ""
        card = self._card(act.system)
        if address and card and self.offer.addresses.get(card) != address:
            comments.append(f"In the field the device was at {address}; here {card} stands for it.")
        step: Any = {"label": labels}
        if not self._cloud and before - set(act.labels):
            step = {"attempt": [step]}
        self._put(act, step, *comments)

    # -- strategies -----------------------------------------------------------------------------------

    def _on_strategy(self, act: Act) -> None:
        if not self._cloud:
            self.draft.open.append(f"what {act.command.text} was for: {cited(act.command)}")
        elif act.kind == "create-strategy":
            self._options = act.options
        elif act.kind == "apply-strategy":
            self._orchestrate(act)
        elif act.kind == "delete-strategy":
            self._strategy = False
            self.draft.add("delete-strategy", cited(act.command))
        else:
            self.draft.open.append(
                f"when the strategy was aborted ({cited(act.command)}): no step stands for it"
            )

    def _orchestrate(self, act: Act) -> None:
        if self._strategy:
            told = f"{OPEN}: when the strategy before was deleted; there can be one at a time."
            self.draft.add("delete-strategy", told)
        self.draft.add("audit-cloud", "The audit that the change forces has its time; a strategy goes by it.")
        ended = self._ended(act)
        step: dict[str, Any] = {"orchestrate": ended.detail or None if ended is not None else None}
        comments = [cited(act.command)]
        if ended is not None:
            comments.append(f"How it ended: {cited(ended)}.")
        if ended is None or not ended.detail:
            comments.append(f"{OPEN}: the state in which the strategy ended; any will do.")
        kind = self._options.get("subcloud-apply-type")
        if kind in ("serial", "parallel"):
            step["subcloud_apply_type"] = kind
        most = self._options.get("max-parallel-subclouds", "")
        if most.isdigit() and int(most[:6]) > 0:
            step["max_parallel"] = int(most[:6])
        if "stop-on-failure" in self._options:
            step["stop_on_failure"] = True
        self._options, self._strategy = {}, True
        self.draft.add(step, *comments)
        self.draft.add("audit-cloud", "The audit that the end of a strategy forces.")

    def _ended(self, act: Act) -> Happened | None:
        """Return what is said of how a strategy ended: behind its command, before the next one."""
        after: list[Event] = []
        for event in self.log.events:
            if event is act.command:
                after = [event]
            elif after and isinstance(event, Command):
                break
            elif after and isinstance(event, Happened) and event.what == "round":
                return event
        return None
