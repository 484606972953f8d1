"""Cards as trees of files, programs in the tools' place, and a real SSH server in front of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support.cards import FileCard, Programs, add_card
from support.ssh_peer import access, openssh, peer

from harness.inventory.model import Wear
from harness.judgement.records import Record

__all__ = ["access", "openssh", "peer"]


@dataclass(frozen=True)
class Entry:
    """A card of an inventory."""

    name: str = "card0"
    address: str = "0000:b2:00.0"
    identity: str | None = "64:4c:36:00:12:a0"
    irreversible: tuple[str, ...] = ()
    wear: Wear | None = None


class KeptHistory:
    """A history in memory."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Any) -> Any:
        numbered = replace(record, seq=len(self.records) + 1, time=float(len(self.records)))
        self.records.append(numbered)
        return numbered

    def kinds(self) -> list[str]:
        return [record.kind for record in self.records]

    def of(self, kind: type[Any]) -> list[Any]:
        return [record for record in self.records if isinstance(record, kind)]


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    return tmp_path / "sys"


@pytest.fixture
def file_card(sysfs: Path) -> FileCard:
    return add_card(sysfs)


@pytest.fixture
def programs(tmp_path: Path, sysfs: Path) -> Programs:
    return Programs(tmp_path / "programs", sysfs)


@pytest.fixture
def kept() -> KeptHistory:
    return KeptHistory()


@pytest.fixture
def entry() -> Callable[..., Entry]:
    return Entry
