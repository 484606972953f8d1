"""The images that scenarios flash, built from recipes on first use or read from a file."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import ConfigurationError

if TYPE_CHECKING:
    from harness.images.facts import ImageFacts
    from harness.images.payload import PayloadTable
    from harness.images.recipes import Recipe


@dataclass(frozen=True, slots=True)
class Image:
    """An image ready to be flashed: its bytes, and what they are."""

    name: str
    data: bytes
    facts: ImageFacts


class ImageShelf:
    """Images by recipe name; each is built once."""

    def __init__(
        self,
        recipes: Mapping[str, Recipe],
        payloads: PayloadTable | None = None,
        files: Mapping[str, Path] | None = None,
    ) -> None:
        self._recipes = recipes
        self._payloads = payloads
        self._files = files or {}
        self._built: dict[str, Image] = {}

    @classmethod
    def of(
        cls, project: Path, *, recipes: bool = True, files: Mapping[str, Path] | None = None
    ) -> ImageShelf:
        """Return the shelf of ``fixtures/images.yaml`` in the folder ``project``.

        :param files: images that are read, by name; one hides a recipe that is called so.
        :param recipes: False: files alone are wanted, so that there need be no recipes.
        :raises ConfigurationError: the file is missing or wrong.
        """
        from harness.images.payload import load_payload_table
        from harness.images.recipes import load_recipes

        path = project / "fixtures" / "images.yaml"
        tabled = project / "fixtures" / "vectors" / "payloads.yaml"
        try:
            return cls(
                load_recipes(path.read_text(encoding="utf-8")) if recipes else {},
                load_payload_table(tabled.read_text(encoding="utf-8")) if tabled.exists() else None,
                files,
            )
        except OSError as error:
            raise ConfigurationError(
                f"Cannot read the image recipes {path}: {error.strerror}",
                hint="They are expected in fixtures/images.yaml beside the inventory.",
            ) from error

    def __iter__(self) -> Iterator[str]:
        return iter({**self._recipes, **self._files})

    @property
    def recipes(self) -> Mapping[str, Recipe]:
        """What the images are made of."""
        return self._recipes

    def __getitem__(self, name: str) -> Image:
        """Return the image ``name``. :raises ConfigurationError: no such recipe."""
        from harness.images.recipes import build

        if name in self._files:
            return self.file(self._files[name], name)
        if name not in self._recipes:
            near = difflib.get_close_matches(name, self._recipes, 1)
            raise ConfigurationError(
                f"No image recipe is called {name!r}.",
                hint=f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(self._recipes)}.",
            )
        if name not in self._built:
            self._built[name] = self._image(name, build(self._recipes[name]))
        return self._built[name]

    def file(self, path: Path, name: str = "") -> Image:
        """Return the image in the file ``path``, called so unless ``name`` says otherwise.

        :raises ConfigurationError: it cannot be read.
        """
        from harness.hosts.sources import image_bytes

        return self._image(name or path.name, image_bytes(path))

    def _image(self, name: str, data: bytes) -> Image:
        from harness.images.facts import image_facts

        table = self._payloads
        facts = image_facts(data, name, table.sr, table.bmc) if table else image_facts(data, name)
        return Image(name, data, facts)


class RootHashes(Mapping[str, str]):
    """Root entry hashes by name: of a root key (``A``), or of the root entry in an image."""

    def __init__(self, shelf: ImageShelf) -> None:
        self._shelf = shelf
        self._names = {
            name.removeprefix("root-key-"): name for name in shelf if name.startswith("root-key-")
        } | {name: name for name in shelf}

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> str:
        """Return the hash. :raises KeyError: no such name, or the image has no root entry."""
        facts = self._shelf[self._names[name]].facts
        root = facts.programs_root or facts.root_entry_hash
        if root is None:
            raise KeyError(name)
        return root
