"""Describes what an inventory may hold: as JSON Schema, and as one line per key for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.inventory.model import Inventory


@dataclass(frozen=True, slots=True)
class Key:
    """One key of an inventory: where it stands, what it may hold, what holds where it is left out."""

    key: str
    holds: str
    default: str


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of an inventory file (what stands in the file, not what the harness adds)."""
    schema = Inventory.model_json_schema()
    for model in (schema, *schema["$defs"].values()):
        for added in ("name", "path"):
            model["properties"].pop(added, None)
    return schema


def keys_of_schema() -> Iterator[Key]:
    """Yield every key of an inventory file, in the order of the schema."""
    schema = json_schema()
    yield from _keys_below(schema, schema["$defs"], "")


def _keys_below(model: dict[str, Any], defs: dict[str, Any], prefix: str) -> Iterator[Key]:
    required = set(model.get("required", ()))
    for name, field in model["properties"].items():
        key = f"{prefix}{name}"
        kind = _kind(field, defs)
        entry = kind.get("additionalProperties")
        if "properties" in kind:
            yield Key(key, "a mapping", "required" if name in required else "absent")
            yield from _keys_below(kind, defs, f"{key}.")
        elif isinstance(entry, dict) and "properties" in (of_entry := _kind(entry, defs)):
            yield Key(key, "entries by name", "required" if name in required else "none")
            yield from _keys_below(of_entry, defs, f"{key}.NAME.")
        else:
            yield Key(key, _holds(kind), "required" if name in required else _default(field))


def _kind(field: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    """Follow references and take the alternative ``null`` away."""
    while "$ref" in field or ("anyOf" in field and any(c.get("type") == "null" for c in field["anyOf"])):
        if "$ref" in field:
            field = defs[field["$ref"].rsplit("/", 1)[1]]
        else:
            field = next(choice for choice in field["anyOf"] if choice.get("type") != "null")
    return field


def _holds(kind: dict[str, Any]) -> str:
    if "const" in kind:
        return str(kind["const"])
    if "enum" in kind:
        return " | ".join(map(str, kind["enum"]))
    match kind.get("type"):
        case "array":
            return f"list of {_holds(kind['items'])}"
        case "object":
            return "a mapping"
        case "integer" if "maximum" in kind:
            return f"{kind['minimum']}..{kind['maximum']}"
        case "string":
            return {"path": "path"}.get(kind.get("format", ""), "text")
        case other:
            return str(other)


def _default(field: dict[str, Any]) -> str:
    value = field.get("default")
    if value is None or value == []:
        return "absent"
    return str(value).lower() if isinstance(value, bool) else str(value)
