"""What every entry of an inventory has: strict keys, a name, references to secrets, errors with a place."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StrictBool, model_validator

from harness.errors import ConfigurationError
from harness.inventory.forms import EnvName, FilePath, Name


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


def no_such_entry(error: ConfigurationError, *keys: str) -> EntryError:
    """Return ``error`` as one that the loader places at ``keys``."""
    return EntryError(f"{error.message} {error.hint}", *keys)


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
        name: {"name": name} | entry if isinstance(entry, dict) and isinstance(name, str) else entry
        for name, entry in entries.items()
    }


def _name_is_key(entries: Mapping[str, NamedT]) -> Mapping[str, NamedT]:
    for key, entry in entries.items():
        if entry.name != key:
            raise EntryError(f"the entry {key!r} calls itself {entry.name!r}; leave 'name' out", key, "name")
    return entries


ByName = Annotated[Mapping[Name, NamedT], BeforeValidator(_name_by_key), AfterValidator(_name_is_key)]


class Passphrase(Entry):
    """Where what opens an encrypted private key is found. Exactly one of the two is given."""

    env: EnvName | None = None
    file: FilePath | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Passphrase:
        if (self.env is None) == (self.file is None):
            raise ValueError("give exactly one of env (variable that holds it) and file (file that holds it)")
        return self


class Credential(Entry):
    """Where a secret is found; never the secret. Exactly one of the first four is given.

    ``passphrase``: what opens ``key_file`` where that is encrypted.
    """

    env: EnvName | None = None
    file: FilePath | None = None
    key_file: FilePath | None = None
    agent: StrictBool = False
    passphrase: Passphrase | None = None

    @property
    def is_password(self) -> bool:
        """Whether it leads to a password, and not to a key."""
        return self.env is not None or self.file is not None

    @model_validator(mode="after")
    def _exactly_one(self) -> Credential:
        given = [name for name in ("env", "file", "key_file", "agent") if getattr(self, name)]
        if len(given) != 1:
            raise ValueError(
                "give exactly one of env (variable that holds the password), file (file that holds it), "
                f"key_file (private key) and agent: true; it has {' and '.join(given) or 'none'}"
            )
        if self.passphrase is not None and self.key_file is None:
            raise EntryError("opens a key_file, and there is none", "passphrase")
        return self
