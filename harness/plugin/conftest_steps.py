"""The steps that conftest files register: imported as pytest would import them, where no test is run."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.errors import ConfigurationError, HarnessError

_NAME = "conftest.py"


def load_steps_beside(files: Iterable[Path], root: Path | None = None) -> None:
    """Import the conftest files of the folders that ``files`` are in, from ``root`` down: outermost first.

    :param root: where pytest would begin; by default where we are. :raises ConfigurationError: one of them
        cannot be imported; the message has file and line.
    """
    from harness.plugin import steps  # noqa: F401 -- conftest files may build on ours

    base = (root or Path.cwd()).resolve()
    for path in dict.fromkeys(found for file in files for found in _above(file.resolve(), base)):
        _import(path, base)


def conftests_below(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the conftest files in ``folders`` and below them."""
    for folder in folders:
        yield from sorted(folder.rglob(_NAME))


def _above(file: Path, base: Path) -> list[Path]:
    """Return the conftest files from ``base``, or from the file's own folder where that is elsewhere."""
    folders = [folder for folder in file.parents if folder.is_relative_to(base)] or [file.parent]
    return [folder / _NAME for folder in reversed(folders) if (folder / _NAME).is_file()]


def _import(path: Path, base: Path) -> None:
    from _pytest.pathlib import ImportMode, import_path

    try:
        import_path(path, mode=ImportMode.importlib, root=base, consider_namespace_packages=False)
    except Exception as error:  # noqa: BLE001 -- whatever its author did, it is told as theirs
        own = [each for each in traceback.extract_tb(error.__traceback__) if each.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else own[-1].lineno if own else None
        place = f"{_shown(path)}:{line}" if line else _shown(path)
        why = error.message if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
        raise ConfigurationError(
            f"{place}: cannot be imported, so its steps are not known: {why}",
            hint=f"pytest would not get further either: pytest --collect-only {_shown(path.parent)}",
        ) from None


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
