"""What an inventory holds: labs with their controllers, hosts, cards and registries, as frozen data."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from harness.errors import ConfigurationError

Irreversible = Literal["root-key", "key-cancellation"]

_ADDRESS = re.compile(r"(?:([0-9a-f]{4}):)?([0-9a-f]{2}:[01][0-9a-f]\.[0-7])")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HASH = re.compile(r"(?:0x)?((?:[0-9a-f]{2}){32})")


class EntryError(ValueError):
    """A rule is broken at ``keys`` below the entry that is being checked."""

    def __init__(self, message: str, *keys: str) -> None:
        super().__init__(message)
        self.keys = keys


def nearest(word: str, known: list[str]) -> str:
    """Return the spelling in ``known`` that is closest to ``word``; empty where none is close."""
    return next(iter(get_close_matches(word, known, n=1, cutoff=0.5)), "")


def unknown_name(what: str, name: str, known: list[str], where: str) -> ConfigurationError:
    """Return the error for a ``name`` that is not in ``where``; it lists the known ones and the nearest."""
    close = nearest(name, known)
    guess = f"Did you mean {close!r}? " if close else ""
    return ConfigurationError(
        f"There is no {what} {name!r} in {where}.",
        hint=f"{guess}Known: {', '.join(known) or 'none'}.",
    )


def _no_such_entry(error: ConfigurationError, *keys: str) -> EntryError:
    """Return ``error`` as one that the loader places at ``keys``."""
    return EntryError(f"{error.message} {error.hint}", *keys)


def _name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a name; letters, digits, '.', '_' and '-' are allowed")
    return text


def _address(text: str) -> str:
    match = _ADDRESS.fullmatch(text.lower())
    if match is None:
        raise ValueError(
            f"{text!r} is not a PCI address; it has the form 0000:b2:00.0 (domain:bus:device.function)"
        )
    return f"{match[1] or '0000'}:{match[2]}"


def _mac(text: str) -> str:
    plain = text.lower().replace("-", ":")
    if _MAC.fullmatch(plain) is None:
        raise ValueError(f"{text!r} is not a MAC address; it has the form 64:4c:36:12:34:56")
    return plain


def _env_name(text: str) -> str:
    if _ENV_NAME.fullmatch(text) is None:
        raise ValueError("not the name of an environment variable; give the name, never the secret itself")
    return text


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("not a URL; it has the form https://registry.example:9001")
    if parts.username is not None or parts.password is not None:
        raise ValueError("holds a user or a password; move them to 'user' and 'credentials'")
    return text


def _sr_root(text: str) -> str:
    """Normalise a root entry hash; anything else is the name of a recipe, which the lab looks up."""
    match = _HASH.fullmatch(text.lower())
    return match[1] if match else text


def _file_path(path: Path, info: ValidationInfo) -> Path:
    """A relative path counts from the inventory's own directory, so that it means the same everywhere."""
    base: Path = (info.context or {}).get("base", Path())
    return base / path.expanduser()


def _words(command: object) -> object:
    return shlex.split(command) if isinstance(command, str) else command


def _no_password_in(words: tuple[str, ...]) -> tuple[str, ...]:
    ipmi = bool(words) and Path(words[0]).name == "ipmitool"
    if any(word.startswith("--pass") or (ipmi and word.startswith("-P")) for word in words):
        raise ValueError(
            "hands a password to a command; let the command read it from the environment or a file "
            "(ipmitool: -E or -f FILE)"
        )
    return words


Name = Annotated[str, AfterValidator(_name)]
PciAddress = Annotated[str, AfterValidator(_address)]
MacAddress = Annotated[str, AfterValidator(_mac)]
EnvName = Annotated[str, AfterValidator(_env_name)]
Url = Annotated[str, AfterValidator(_url)]
SrRoot = Annotated[str, AfterValidator(_sr_root)]
FilePath = Annotated[Path, AfterValidator(_file_path)]
CommandLine = Annotated[
    tuple[str, ...], BeforeValidator(_words), AfterValidator(_no_password_in), Field(min_length=1)
]
CskId = Annotated[int, Field(ge=0, le=127)]
ProfileValue = bool | int | float | str | list[str]


class Entry(BaseModel):
    """Base of everything in an inventory: unknown keys are errors, and nothing changes once loaded."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Named(Entry):
    """An entry that is known by the key it stands under."""

    name: str = ""


NamedT = TypeVar("NamedT", bound=Named)


def _name_by_key(entries: object) -> object:
    if not isinstance(entries, dict):
        return entries
    return {
        name: {"name": name} | entry if isinstance(entry, dict) else entry for name, entry in entries.items()
    }


def _name_is_key(entries: Mapping[str, NamedT]) -> Mapping[str, NamedT]:
    for key, entry in entries.items():
        if entry.name != key:
            raise EntryError(f"the entry {key!r} calls itself {entry.name!r}; leave 'name' out", key, "name")
    return entries


ByName = Annotated[Mapping[Name, NamedT], BeforeValidator(_name_by_key), AfterValidator(_name_is_key)]


class Credential(Entry):
    """Where a secret is found; never the secret. Exactly one of the four is given."""

    env: EnvName | None = None
    file: FilePath | None = None
    key_file: FilePath | None = None
    agent: bool = False

    @model_validator(mode="after")
    def _exactly_one(self) -> Credential:
        given = [name for name in ("env", "file", "key_file", "agent") if getattr(self, name)]
        if len(given) != 1:
            raise ValueError(
                "give exactly one of env (variable that holds the password), file (file that holds it), "
                f"key_file (private key) and agent: true; it has {' and '.join(given) or 'none'}"
            )
        return self


class SshAccess(Entry):
    """How a real host is reached over SSH. Its host key must stand in ``known_hosts``."""

    address: str = Field(min_length=1)
    user: str = Field(min_length=1)
    port: int = Field(default=22, ge=1, le=65535)
    known_hosts: FilePath = Field(default=Path("~/.ssh/known_hosts"), validate_default=True)
    credentials: Credential = Credential(agent=True)


class PowerCommand(Entry):
    """Command lines that switch a host; they run on the harness's own machine and end when it is done."""

    off: CommandLine
    on: CommandLine


class Power(Entry):
    """How the power of a real host is switched. One way so far; others become further keys."""

    command: PowerCommand


class Tools(Entry):
    """The programs on a host that the drivers call; a bare name is looked up in the host's PATH."""

    fpgasupdate: str = "fpgasupdate"
    fpgainfo: str = "fpgainfo"
    rsu: str = "rsu"


class EmulatedHost(Entry):
    """A host that the emulated lab provides. ``power: false`` makes one that cannot be switched.

    ``recording``: a file of `hil record`; the host is then what was recorded, and nothing else.
    """

    hostname: str = "controller-0"
    recording: FilePath | None = None
    generation: Literal["D"] = "D"
    power: bool = True


class EmulatedCard(Entry):
    """State in which an emulated card begins, and where it departs from the default profile.

    ``sr_root``: root entry hash (hex) or the name of a root-key recipe; absent: not programmed.
    ``moves_to``: PCI address at which the card comes back after its next reset.
    """

    profile: Mapping[str, ProfileValue] = Field(default_factory=dict)
    moves_to: PciAddress | None = None
    sr_root: SrRoot | None = None
    sr_cancelled: tuple[CskId, ...] = ()
    flash_count: int = Field(default=0, ge=0, le=32768)

    @model_validator(mode="after")
    def _cancelled_needs_root(self) -> EmulatedCard:
        if self.sr_cancelled and self.sr_root is None:
            raise ValueError("sr_cancelled needs sr_root: a card without a root cannot cancel a CSK")
        return self


class Card(Named):
    """One FPGA card: where it is, who it is (``identity``: its first MAC), what it may suffer."""

    address: PciAddress
    identity: MacAddress | None = None
    irreversible: tuple[Irreversible, ...] = ()
    emulated: EmulatedCard | None = None


class Host(Named):
    """A machine with cards in it, reached in exactly one way: emulated, over SSH, or local.

    ``system``: the controller it belongs to. ``upload_dir``: where images are put for a flash.
    """

    system: str | None = None
    emulated: EmulatedHost | None = None
    ssh: SshAccess | None = None
    local: bool = False
    power: Power | None = None
    sysfs: str = Field(default="/sys", pattern="^/")
    upload_dir: str = Field(default="/tmp", pattern="^/")
    tools: Tools = Tools()
    cards: ByName[Card] = Field(default_factory=dict)

    @property
    def real(self) -> bool:
        """Whether the interlock's second condition holds: what happens here happens to real hardware."""
        return self.emulated is None

    @property
    def can_power(self) -> bool:
        """Whether the harness can switch this host's power; without it a scenario is BLOCKED."""
        if self.emulated:
            return self.emulated.power and self.emulated.recording is None
        return self.power is not None

    @field_validator("cards", mode="after")
    @classmethod
    def _addresses_differ(cls, cards: Mapping[str, Card]) -> Mapping[str, Card]:
        seen: dict[str, str] = {}
        for name, card in cards.items():
            if card.address in seen:
                message = f"{seen[card.address]} and {name} both stand at {card.address}"
                raise EntryError(message, name, "address")
            seen[card.address] = name
        return cards

    @model_validator(mode="after")
    def _one_way_in(self) -> Host:
        given = [way for way in ("emulated", "ssh", "local") if getattr(self, way)]
        if len(given) != 1:
            raise ValueError(
                f"give exactly one of emulated, ssh and local: true; it has {' and '.join(given) or 'none'}"
            )
        if self.emulated and self.power:
            raise ValueError("an emulated host switches its own power; leave 'power' out")
        for name, card in self.cards.items():
            replayed = self.emulated is not None and self.emulated.recording is not None
            if self.emulated and card.identity is None and not replayed:
                message = f"the emulated card {name!r} needs an identity, such as 64:4c:36:00:00:01"
                raise EntryError(message, "cards", name)
            if self.real and card.emulated:
                message = f"the card {name!r} is emulated, but its host is real"
                raise EntryError(message, "cards", name, "emulated")
            if replayed and card.emulated:
                message = f"the card {name!r} is as its host's recording has it"
                raise EntryError(message, "cards", name, "emulated")
        return self

    def card(self, name: str) -> Card:
        """Return the card ``name``. :raises ConfigurationError: there is none, with the known ones."""
        try:
            return self.cards[name]
        except KeyError:
            raise unknown_name("card", name, list(self.cards), f"host {self.name}") from None


class EmulatedService(Entry):
    """A controller or registry that the emulated lab provides; it has no settings yet."""


class Controller(Named):
    """A StarlingX system: the system controller, or a subcloud of one."""

    role: Literal["system-controller", "subcloud"]
    parent: str | None = None
    emulated: EmulatedService | None = None
    url: Url | None = None
    user: str = "admin"
    credentials: Credential | None = None

    @model_validator(mode="after")
    def _emulated_or_real(self) -> Controller:
        if (self.emulated is None) == (self.url is None):
            raise ValueError("give exactly one of emulated and url")
        if self.url and self.credentials is None:
            raise ValueError("a real controller needs credentials")
        if (self.role == "subcloud") != (self.parent is not None):
            raise ValueError("a subcloud names its system controller in 'parent'; nothing else has one")
        return self


class Registry(Named):
    """A container registry, emulated or at a URL."""

    emulated: EmulatedService | None = None
    url: Url | None = None
    ca_file: FilePath | None = None
    user: str | None = None
    credentials: Credential | None = None

    @model_validator(mode="after")
    def _emulated_or_real(self) -> Registry:
        if (self.emulated is None) == (self.url is None):
            raise ValueError("give exactly one of emulated and url")
        return self


class Lab(Named):
    """The machines that one run may use."""

    hosts: ByName[Host] = Field(default_factory=dict)
    controllers: ByName[Controller] = Field(default_factory=dict)
    registries: ByName[Registry] = Field(default_factory=dict)

    @property
    def emulated(self) -> bool:
        """Whether every host is emulated, so that nothing in a run touches real hardware."""
        return all(host.emulated for host in self.hosts.values())

    @model_validator(mode="after")
    def _references_hold(self) -> Lab:
        for name, host in self.hosts.items():
            self._check_controller(host.system, "hosts", name, "system")
        for name, controller in self.controllers.items():
            self._check_controller(controller.parent, "controllers", name, "parent")
        seen: dict[str, str] = {}
        for host, card in self.cards():
            title = f"{host.name}/{card.name}"
            if card.identity in seen:
                message = f"{seen[card.identity]} and {title} have the same identity {card.identity}"
                raise EntryError(message, "hosts", host.name, "cards", card.name, "identity")
            if card.identity:
                seen[card.identity] = title
        return self

    def _check_controller(self, name: str | None, *keys: str) -> None:
        if name is not None and name not in self.controllers:
            raise _no_such_entry(unknown_name("controller", name, list(self.controllers), "this lab"), *keys)

    def cards(self) -> Iterator[tuple[Host, Card]]:
        """Yield every card with its host, in the order of the file."""
        for host in self.hosts.values():
            for card in host.cards.values():
                yield host, card

    def host(self, name: str) -> Host:
        """Return the host ``name``. :raises ConfigurationError: there is none, with the known ones."""
        try:
            return self.hosts[name]
        except KeyError:
            raise unknown_name("host", name, list(self.hosts), f"lab {self.name}") from None

    def card(self, name: str) -> tuple[Host, Card]:
        """Return host and card of a name such as ``subcloud1/card0``.

        :raises ConfigurationError: there is no such card; the hint has the known ones.
        """
        known = {f"{host.name}/{card.name}": (host, card) for host, card in self.cards()}
        try:
            return known[name]
        except KeyError:
            raise unknown_name("card", name, list(known), f"lab {self.name}") from None


class Inventory(Entry):
    """Everything the harness may touch. ``path``: the file that it was read from."""

    version: Literal[1]
    default_lab: str
    labs: ByName[Lab] = Field(min_length=1)
    path: Path = Field(default=Path("inventory.yaml"), exclude=True)

    @model_validator(mode="after")
    def _default_exists(self) -> Inventory:
        try:
            self.lab()
        except ConfigurationError as error:
            raise _no_such_entry(error, "default_lab") from None
        return self

    def lab(self, name: str | None = None) -> Lab:
        """Return the lab ``name``, or the default one.

        :raises ConfigurationError: there is no such lab; the hint has the known ones.
        """
        name = self.default_lab if name is None else name
        try:
            return self.labs[name]
        except KeyError:
            raise unknown_name("lab", name, list(self.labs), str(self.path)) from None
