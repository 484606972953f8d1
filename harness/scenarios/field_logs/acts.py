"""What the command lines of a log ask for: each as an act with its system, its words and its options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from harness.scenarios.field_logs.events import CENTRAL, Command, Told
from harness.scenarios.field_logs.reading import FieldLog

Kind = Literal[
    "upload", "apply", "remove", "delete", "label", "unlabel", "update", "abort", "lock", "unlock", "list",
    "create-strategy", "apply-strategy", "abort-strategy", "delete-strategy", "flash", "reset", "push",
]  # fmt: skip
_SYSTEM: Final[Mapping[str, Kind]] = {
    "device-image-upload": "upload", "device-image-create": "upload", "device-image-apply": "apply",
    "device-image-remove": "remove", "device-image-delete": "delete", "host-device-label-assign": "label",
    "host-device-label-remove": "unlabel", "host-device-image-update": "update",
    "host-device-image-update-abort": "abort", "host-lock": "lock", "host-unlock": "unlock",
}  # fmt: skip
_STRATEGY: Final[Mapping[str, Kind]] = {
    "create": "create-strategy", "apply": "apply-strategy", "abort": "abort-strategy",
    "delete": "delete-strategy",
}  # fmt: skip
#: Options that take nothing.
_FLAGS: Final = frozenset(
    {"bmc", "retimer-included", "nowrap", "overwrite", "stop-on-failure", "force", "debug", "y", "yes", "f"}
)
#: Short options of an upload -> their names (fact sheet of StarlingX, section 2.7).
_SHORT: Final = {"b": "bitstream-id", "k": "key-signature", "r": "revoke-key-id", "n": "name", "u": "uuid"}
Label = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Act:
    """One act. ``words``: what is no option; ``options``: without dashes, empty for flags."""

    kind: Kind
    command: Command
    words: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def system(self) -> str:
        """Where it was asked for; empty where that is not said."""
        return self.command.system

    @property
    def labels(self) -> tuple[Label, ...]:
        """The labels among its words."""
        pairs = (word.partition("=") for word in self.words)
        return tuple((key, value) for key, equals, value in pairs if equals and key and value)


def acts_of(log: FieldLog) -> list[Act]:
    """Return the acts of all command lines that are known, in their order."""
    return [act for command in log.of(Command) if (act := act_of(command)) is not None]


def act_of(command: Command) -> Act | None:
    """Return what a command line asks for; None where it changes nothing that is known."""
    program, *rest = command.words
    words, options = _parsed(rest)
    if program == "system" and words and words[0] in _SYSTEM:
        return Act(_SYSTEM[words[0]], command, words[1:], options)
    if program == "dcmanager" and words[:1] == ("fw-update-strategy",) and len(words) > 1:
        kind = _STRATEGY.get(words[1])
        return Act(kind, command, words[2:], options) if kind else None
    if program == "fpgasupdate" and words:
        return Act("flash", command, words, options)
    if program == "rsu" and words[:1] in (("bmcimg",), ("bmc",), ("fpga",)):
        return Act("reset", command, words, options)
    if program == "docker" and words[:1] == ("push",) and len(words) > 1:
        return Act("push", command, words[1:], options)
    if program == "skopeo" and words[:1] == ("copy",) and len(words) > 2:
        return Act("push", command, (words[2].removeprefix("docker://"),), {"client": "skopeo"})
    return None


def _parsed(rest: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    words: list[str] = []
    options: dict[str, str] = {}
    each = iter(rest)
    for word in each:
        if not word.startswith("-") or word == "-":
            words.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = _SHORT.get(name, name) if not word.startswith("--") else name
        options[name] = value if equals else "" if name in _FLAGS else next(each, "")
    return tuple(words), options


def carried_labels(log: FieldLog) -> dict[str, set[Label]]:
    """Return the labels of each system's devices, as far as its commands and its own tables say."""
    found: dict[str, set[Label]] = {}
    for act in acts_of(log):
        if act.kind == "label":
            found.setdefault(act.system, set()).update(act.labels)
    for told in log.of(Told):
        statement = told.claim.statement
        if "label_key" in statement and statement.get("hostname"):
            label = (str(statement["label_key"]), str(statement["label_value"]))
            found.setdefault(told.system, set()).add(label)
        elif told.system != CENTRAL:
            found.setdefault(told.system, set()).update(_labels(statement.get("applied_labels")))
    return found


def applied_labels(told: Told) -> set[Label]:
    """Return the labels that an image is said to be applied to."""
    return set(_labels(told.claim.statement.get("applied_labels")))


def _labels(shown: object) -> Iterator[Label]:
    if isinstance(shown, tuple):
        yield from (each for each in shown if isinstance(each, tuple) and len(each) == 2 and each != ("", ""))
