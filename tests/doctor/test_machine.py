"""This machine, as the doctor finds it: packages, programs, disk, databases; nothing is changed."""

from __future__ import annotations

import shutil
from collections import namedtuple
from importlib import metadata
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

from harness.doctor import machine as asked
from harness.doctor.machine import machine
from harness.health.checks import Check, Grade
from harness.health.store import HealthStore
from harness.inventory.model import Lab
from harness.store import opening

PUSHES = Lab.model_validate({"name": "small", "registries": {"r": {"emulated": {}}}})
Usage = namedtuple("Usage", "total used free")


def look(folder: Path, lab: Lab = PUSHES, leases: str = "", index: str | None = None) -> dict[str, Check]:
    part = machine(lab, folder / "reports", leases or f"sqlite:///{folder}/leases.sqlite", index)
    return {check.name: check for check in part.checks}


def test_a_folder_without_anything_is_well_and_stays_empty(tmp_path: Path) -> None:
    found = look(tmp_path, index=f"sqlite:///{tmp_path}/index.sqlite")
    assert {found[name].grade for name in ("python", "packages", "account", "database")} == {Grade.OK}
    assert list(tmp_path.iterdir()) == []


def test_packages_that_are_missing_or_too_old_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = ["pytest>=999", "no-such-package>=1", "not-wanted>=1; extra == 'x'"]
    monkeypatch.setattr(metadata, "requires", lambda name: needs)
    found = look(tmp_path)["packages"]
    assert found.grade is Grade.BAD
    assert "pytest is " in found.finding
    assert "no-such-package is missing" in found.finding
    assert "not-wanted" not in found.finding
    assert "make setup" in found.hint


@pytest.mark.parametrize(
    ("free", "grade"), [(1 << 30, Grade.OK), ((1 << 30) - 1, Grade.WARN), ((64 << 20) - 1, Grade.BAD)]
)
def test_a_disk_that_fills_up_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, grade: Grade
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(free, 0, free))
    found = look(tmp_path)["disk"]
    assert found.grade is grade
    assert "hil history prune" in found.hint or grade is Grade.OK


def test_programs_that_are_missing_are_told_with_their_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked, "installed", lambda program: None)
    monkeypatch.setattr(asked, "tools_folder", lambda: tmp_path / "none")
    found = look(tmp_path)
    for name in ("docker-registry", "skopeo"):
        assert found[name].grade is Grade.WARN
        assert f"apt-get install {name}" in found[name].hint
    assert "chromium" in found["browser"].hint
    assert not {"docker-registry", "skopeo"} & set(look(tmp_path, Lab(name="cards"))), (
        "a lab of cards pushes nothing"
    )


def version(url: str, form: str) -> None:
    engine = create_engine(url)
    config = Config()
    config.set_main_option("script_location", str(opening._MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, form)
    engine.dispose()


def test_a_database_of_an_earlier_version_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/leases.sqlite"
    version(url, "0002")
    found = look(tmp_path)["database"]
    assert (found.grade, "0002" in found.finding) == (Grade.OK, True)
    assert opening.version_of(url) == "0002"


def test_one_of_a_later_version_or_none_at_all_is_bad(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/leases.sqlite"
    with HealthStore(url) as store, store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    found = look(tmp_path)["database"]
    assert (found.grade, "9999" in found.finding) == (Grade.BAD, True)
    (tmp_path / "broken.sqlite").write_bytes(b"no database" * 100)
    found = look(tmp_path, leases=f"sqlite:///{tmp_path}/broken.sqlite")["database"]
    assert found.grade is Grade.BAD
    assert found.hint
    gone = look(tmp_path, leases="postgresql://hil@127.0.0.1:1/hil")["database"]
    assert gone.grade is Grade.BAD
