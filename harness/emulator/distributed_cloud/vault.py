"""The vault of a system controller: the files of the images that its subclouds are to get (section 5.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from harness.emulator.distributed_cloud.regions import Entry
from harness.emulator.starlingx.database import Row
from harness.emulator.starlingx.uploads import file_name
from harness.images.facts import ImageFacts, image_facts
from harness.images.payload import PayloadTable

#: Where it is on a real controller; messages name files there.
FOLDER: Final = "/opt/dc-vault/device_images"


class Vault:
    """The files of one vault, in ``folder``. ``payloads``: names payloads that do not say what they are."""

    def __init__(self, folder: Path, payloads: PayloadTable | None = None) -> None:
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._payloads = payloads or PayloadTable({}, {})
        self._facts: dict[str, tuple[int, ImageFacts]] = {}
        #: Whether a file can be copied into it.
        self.takes_files = True

    def take_files(self, takes: bool) -> None:
        """Have files be copied into it, or none: its staging directory is full."""
        self.takes_files = takes

    @staticmethod
    def path(image: Row | Entry) -> str:
        """Return where the file of ``image`` is on a real controller."""
        return f"{FOLDER}/{file_name(image)}"

    def put(self, image: Row | Entry, content: bytes) -> None:
        """Copy a file into it, by way of a staging directory. :raises OSError: it cannot be."""
        if not self.takes_files:
            raise OSError(28, "No space left on device", "/scratch/tmp_load")
        staged = self._folder / f".{image['uuid']}.new"
        staged.write_bytes(content)
        staged.replace(self._folder / file_name(image))

    def read(self, image: Row | Entry) -> bytes | None:
        """Return the file of ``image``; None where there is none."""
        file = self._folder / file_name(image)
        return file.read_bytes() if file.is_file() else None

    def remove(self, image: Row | Entry) -> None:
        """Remove the file of ``image``, if it is there."""
        (self._folder / file_name(image)).unlink(missing_ok=True)

    def lose(self, uuid: str) -> bool:
        """Remove the file of the image ``uuid``; return whether there was one."""
        files = list(self._folder.glob(f"*-{uuid}.bit"))
        for file in files:
            file.unlink()
        return bool(files)

    def facts(self, image: Row | Entry) -> ImageFacts | None:
        """Return what the file of ``image`` is, by its bytes; None where there is no file."""
        file = self._folder / file_name(image)
        if not file.is_file():
            return None
        changed = file.stat().st_mtime_ns
        kept = self._facts.get(image["uuid"])
        if kept is None or kept[0] != changed:
            facts = image_facts(file.read_bytes(), file.name, self._payloads.sr, self._payloads.bmc)
            kept = self._facts[image["uuid"]] = (changed, facts)
        return kept[1]
