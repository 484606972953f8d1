"""Recipes: what an image is, in the words of a scenario ("signed by root A with CSK 1"), and its bytes.

A recipe states what the image is made of, so that an expected result can be told from it without looking
at bytes; :func:`build` makes the same bytes on every machine.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final, Literal

from harness.errors import ConfigurationError
from harness.images import layout
from harness.images.damage import DAMAGES
from harness.images.keys import PrivateKey, key_from_seed
from harness.images.payload import BmcIdentity, PayloadIdentity, build_payload, reverse_bits
from harness.images.sign import cancellation_image, root_key_image, seal, sign
from harness.yaml_text import load_plain

Kind = Literal["update", "root-key", "cancellation", "raw"]
_KINDS: Final = ("update", "root-key", "cancellation", "raw")


@dataclass(frozen=True, slots=True)
class KeySeed:
    """A throw-away root key, and the CSKs that belong to it, as the seed that they are derived from."""

    name: str
    seed: str
    curve: layout.Curve = layout.P256

    def root(self) -> PrivateKey:
        """Return the root key."""
        return key_from_seed(f"{self.seed}/{self.name}/root", self.curve)

    def csk(self, csk_id: int) -> PrivateKey:
        """Return the CSK with that id."""
        return key_from_seed(f"{self.seed}/{self.name}/csk{csk_id}", self.curve)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What an image is made of.

    ``what``: for people. ``kind``: an UPDATE image, a root-key image, a cancellation, or a raw payload
    without blocks. ``root``: the root key (None: no root key). ``csk``: id of the CSK (None: not signed
    by one). ``csk_signer``: who signed the CSK entry, where that is not ``root``. ``cancel``: id to cancel.
    ``damage``: name in :data:`harness.images.damage.DAMAGES`, done last. ``bitstream_id``,
    ``interface_id``, ``bitstream_metadata``: what a card reports that runs an SR payload;
    ``bmcfw_version``, ``bmc_version``: the same for a BMC payload, as version words. ``swapped_from``:
    ``bitstream_id`` that was signed, where the payload was exchanged afterwards. ``size``: payload bytes.
    """

    name: str
    what: str
    kind: Kind = "update"
    content_type: str = "SR"
    root: KeySeed | None = None
    csk: int | None = None
    csk_signer: KeySeed | None = None
    cancel: int | None = None
    damage: str | None = None
    bitstream_id: int | None = None
    interface_id: str = ""
    bitstream_metadata: int = 0
    bmcfw_version: int | None = None
    bmc_version: int | None = None
    swapped_from: int | None = None
    size: int = 16384
    version: str = ""

    @property
    def unsigned(self) -> bool:
        """Whether the image carries neither root key nor signature by design of the recipe."""
        return self.kind == "update" and self.root is None and self.csk is None

    @property
    def identity(self) -> PayloadIdentity | BmcIdentity | None:
        """What the payload says it is; None for root-key and cancellation images."""
        if self.bmcfw_version is not None and self.bmc_version is not None:
            return BmcIdentity(self.bmcfw_version, self.bmc_version)
        if self.bitstream_id is not None:
            return PayloadIdentity(self.bitstream_id, self.interface_id, self.bitstream_metadata)
        return None

    def root_entry_hash(self) -> str | None:
        """Return the root entry hash that a card must hold to take the image, or that it programs."""
        return self.root.root().public.root_entry_hash() if self.root else None


def build(recipe: Recipe) -> bytes:
    """Return the image of ``recipe``: the same bytes on every run and machine.

    :raises ConfigurationError: the recipe contradicts itself.
    """
    root = recipe.root.root() if recipe.root else None
    # A CSK belongs to the root it is named after; without a root it is one of nobody's.
    owner = recipe.root or KeySeed("nobody", "nobody")
    csk = owner.csk(recipe.csk) if recipe.csk is not None else None
    if recipe.kind == "root-key" and root:
        image = root_key_image(root.public, recipe.content_type)
    elif recipe.kind == "cancellation" and root and recipe.cancel is not None:
        image = cancellation_image(recipe.cancel, root, recipe.content_type)
    elif recipe.kind == "raw":
        return _payload(recipe)
    elif recipe.kind == "update":
        image = _update(recipe, root, csk)
    else:
        needed = "root" if recipe.kind == "root-key" else "root and cancel"
        raise ConfigurationError(f"The recipe {recipe.name!r} of kind {recipe.kind} needs {needed}.")
    if recipe.damage is None:
        return image
    return DAMAGES[recipe.damage].apply(image, root=root, csk=csk)


def _update(recipe: Recipe, root: PrivateKey | None, csk: PrivateKey | None) -> bytes:
    signed = recipe.swapped_from if recipe.swapped_from is not None else recipe.bitstream_id
    image = bytearray(
        sign(
            _payload(recipe, signed),
            recipe.content_type,
            root=root,
            csk=csk,
            csk_id=recipe.csk or 0,
            version=recipe.version,
        )
    )
    if recipe.csk_signer:
        seal(image, root=recipe.csk_signer.root(), which={"csk"})
    if recipe.swapped_from is not None:
        image[layout.HEADER_SIZE :] = reverse_bits(_payload(recipe))
    return bytes(image)


def _payload(recipe: Recipe, bitstream_id: int | None = None) -> bytes:
    identity = recipe.identity
    if identity is None:
        raise ConfigurationError(
            f"The recipe {recipe.name!r} does not say what its payload is.",
            hint="Give bitstream_id, or bmcfw_version and bmc_version for a BMC image.",
        )
    if isinstance(identity, PayloadIdentity) and bitstream_id is not None:
        identity = PayloadIdentity(bitstream_id, identity.interface_id, identity.bitstream_metadata)
    return build_payload(identity, recipe.size, recipe.name)


def load_recipes(text: str) -> dict[str, Recipe]:
    """Return the recipes of a recipe file (YAML), by name.

    ``seed`` and ``keys`` (name -> ``curve``) give the root keys; ``defaults`` holds for every recipe;
    ``recipes``: name -> the fields of :class:`Recipe`, keys by name.

    :raises ConfigurationError: names the recipe, the key, what is allowed and the nearest spelling.
    """
    try:
        document = load_plain(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"The image recipes cannot be read: {error.message}") from error
    top = _mapping(document, "The recipe file")
    _check_keys("The recipe file", top, ("seed", "keys", "defaults", "recipes"))
    seed = str(top.get("seed", ""))
    keys: dict[str, KeySeed] = {}
    for name, entry in _mapping(top.get("keys", {}), "keys").items():
        keys[name] = _key(name, _mapping(entry or {}, f"The key {name!r}"), seed)
    defaults = _mapping(top.get("defaults", {}), "defaults")
    recipes = _mapping(top.get("recipes", {}), "recipes")
    return {
        name: _recipe(name, {**defaults, **_mapping(entry, f"The recipe {name!r}")}, keys)
        for name, entry in recipes.items()
    }


def _key(name: str, entry: Mapping[str, Any], seed: str) -> KeySeed:
    _check_keys(f"The key {name!r}", entry, ("curve",))
    curves = {curve.name: curve for curve in layout.CURVES}
    curve = _known(f"The curve of the key {name!r}", entry.get("curve", layout.P256.name), curves)
    return KeySeed(name, seed, curves[curve])


_FIELDS: Final = {field.name: field for field in fields(Recipe) if field.name != "name"}
_ALLOWED: Final[dict[str, tuple[str, ...]]] = {
    "kind": _KINDS,
    "content_type": tuple(layout.CONTENT_TYPES.values()),
    "damage": tuple(DAMAGES),
}


def _recipe(name: str, entry: Mapping[str, Any], keys: Mapping[str, KeySeed]) -> Recipe:
    owner = f"The recipe {name!r}"
    _check_keys(owner, entry, tuple(_FIELDS))
    values = dict(entry)
    for key in ("root", "csk_signer"):
        if key in values:
            values[key] = keys[_known(f"{key} of the recipe {name!r}", values[key], keys)]
    for key, allowed in _ALLOWED.items():
        if key in values:
            _known(f"{key} of the recipe {name!r}", values[key], allowed)
    for key, field in _FIELDS.items():
        if key not in values and field.default is MISSING:
            raise ConfigurationError(f"{owner} does not say {key!r}.")
        if key in values and "int" in str(field.type) and not _is_number(values[key]):
            raise ConfigurationError(f"{key} of the recipe {name!r} is {values[key]!r}, not a number.")
        if key in values and field.type == "str" and not isinstance(values[key], str):
            raise ConfigurationError(f"{key} of the recipe {name!r} is {values[key]!r}, not text.")
    return Recipe(name=name, **values)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _mapping(value: object, owner: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigurationError(f"{owner} is not a mapping of names to values.")
    return {str(key): item for key, item in value.items()}


def _check_keys(owner: str, entry: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    for key in entry:
        _known(f"A key of {owner[0].lower()}{owner[1:]}", key, allowed)


def _known(what: str, value: object, allowed: Mapping[str, Any] | tuple[str, ...]) -> str:
    """Return ``value`` where it is allowed. :raises ConfigurationError: it is not."""
    if isinstance(value, str) and value in allowed:
        return value
    near = difflib.get_close_matches(str(value), allowed, 1)
    suggestion = f"Did you mean {near[0]!r}? " if near else ""
    raise ConfigurationError(
        f"{what} is {value!r}, which there is not.", hint=f"{suggestion}Allowed: {', '.join(allowed)}."
    )
