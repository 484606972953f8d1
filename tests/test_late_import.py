"""A module whose import is put off is loaded by its first use, and by nothing before."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from harness.late_import import import_when_used

MODULE = "PLACE = __name__\n"


@pytest.fixture
def rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package that nobody has imported, with one module in it."""
    package = tmp_path / "rarely_used"
    package.mkdir()
    (package / "__init__.py").write_text(MODULE)
    (package / "inner.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("rarely_used", "rarely_used.inner"):
        monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(sys.modules, name)
    return "rarely_used"


def test_its_import_loads_nothing_and_its_use_does(rarely: str) -> None:
    import_when_used(rarely)
    import rarely_used  # type: ignore[import-not-found]

    assert "PLACE" not in vars(sys.modules[rarely])
    assert rarely == rarely_used.PLACE
    assert "PLACE" in vars(sys.modules[rarely])


def test_a_module_in_it_is_found(rarely: str) -> None:
    import_when_used(rarely)
    from rarely_used.inner import PLACE  # type: ignore[import-not-found]

    assert PLACE == "rarely_used.inner"


def test_who_asks_whether_it_is_installed_is_told_so_and_loads_nothing(rarely: str) -> None:
    import_when_used(rarely)
    found = importlib.util.find_spec(rarely)
    assert found is not None and found.name == rarely
    assert "PLACE" not in vars(sys.modules[rarely])


def test_who_asks_every_module_where_it_is_is_told_so_and_loads_nothing(rarely: str, tmp_path: Path) -> None:
    """As `inspect` does, and Hypothesis."""
    import_when_used(rarely)
    assert sys.modules[rarely].__file__ == str(tmp_path / "rarely_used/__init__.py")
    assert "PLACE" not in vars(sys.modules[rarely])


def test_what_it_has_not_is_told_as_ever(rarely: str) -> None:
    import_when_used(rarely)
    with pytest.raises(ImportError, match="cannot import name 'nothing' from 'rarely_used'"):
        from rarely_used import nothing  # noqa: F401


def test_one_that_is_imported_stays(rarely: str) -> None:
    import rarely_used

    import_when_used(rarely)
    assert sys.modules[rarely] is rarely_used


def test_one_that_is_not_installed_stays_missing() -> None:
    import_when_used("no_such_module_anywhere")
    assert "no_such_module_anywhere" not in sys.modules


@pytest.mark.parametrize("module", ["harness.hosts.ssh", "harness.emulator.serve"])
def test_ssh_is_reached_without_what_paramiko_hardly_uses(module: str) -> None:
    probe = f"import sys, {module}, paramiko.config as p;print('invoke.tasks' in sys.modules, p.invoke.run)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("False <function run"), done.stderr
