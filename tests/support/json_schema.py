"""Holds data to a JSON Schema, as far as the schemas of this project go; anything else in one is an error."""

import re
from typing import Any

_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}
_ABOUT = {"$schema", "$defs", "title", "description", "default", "examples", "format"}


def broken(schema: dict[str, Any], data: Any, root: dict[str, Any] | None = None, at: str = "") -> list[str]:
    """Return what ``data`` breaks of ``schema``, each with its place."""
    root = schema if root is None else root
    found: list[str] = []
    for word, value in schema.items():
        match word:
            case "$ref":
                found += broken(root["$defs"][value.rpartition("/")[2]], data, root, at)
            case "anyOf" | "oneOf":
                if all(broken(each, data, root, at) for each in value):
                    found.append(f"{at}: none of {len(value)} fits {data!r}")
            case "enum":
                found += [] if data in value else [f"{at}: {data!r} is none of {value}"]
            case "const":
                found += [] if data == value else [f"{at}: {data!r} is not {value!r}"]
            case "type":
                fits = isinstance(data, _TYPES[value]) and (value == "boolean" or not isinstance(data, bool))
                found += [] if fits else [f"{at}: {data!r} is no {value}"]
            case "properties" if isinstance(data, dict):
                for key in value.keys() & data.keys():
                    found += broken(value[key], data[key], root, f"{at}.{key}")
            case "required" if isinstance(data, dict):
                found += [f"{at}: {key} is missing" for key in value if key not in data]
            case "additionalProperties" if isinstance(data, dict):
                for key in data.keys() - schema.get("properties", {}).keys():
                    if value is False:
                        found.append(f"{at}: unknown key {key}")
                    elif isinstance(value, dict):
                        found += broken(value, data[key], root, f"{at}.{key}")
            case "items" if isinstance(data, list):
                found += [x for n, each in enumerate(data) for x in broken(value, each, root, f"{at}.{n}")]
            case "pattern" if isinstance(data, str):
                found += [] if re.search(value, data) else [f"{at}: {data!r} does not match {value}"]
            case "minLength" | "minItems" | "minProperties" if isinstance(data, (str, list, dict)):
                found += [] if len(data) >= value else [f"{at}: {data!r} is too short"]
            case "minimum" | "exclusiveMinimum" | "maximum" if isinstance(data, (int, float)):
                fits = {"minimum": data >= value, "exclusiveMinimum": data > value, "maximum": data <= value}
                found += [] if fits[word] else [f"{at}: {data!r} breaks {word} {value}"]
            case _:
                known = {"properties", "required", "additionalProperties", "items", "pattern"}
                known |= {"minLength", "minItems", "minProperties", "minimum", "exclusiveMinimum", "maximum"}
                assert word in _ABOUT | known, f"this reader of schemas does not know {word!r}"
    return found
