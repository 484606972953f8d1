"""What the tests of pasted logs have in common: a log that is read from text."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.scenarios.field_logs.reading import FieldLog, read_field_logs

Read = Callable[..., FieldLog]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Read texts as files ``a.txt``, ``b.txt`` and so on; ``skew`` by these names."""
    monkeypatch.chdir(tmp_path)

    def read(*texts: str, **skew: float) -> FieldLog:
        names = [f"{letter}.txt" for letter, _ in zip("abcdef", texts, strict=False)]
        for name, text in zip(names, texts, strict=True):
            (tmp_path / name).write_text(text, encoding="utf-8")
        return read_field_logs(names, {f"{name}.txt": ahead for name, ahead in skew.items()})

    return read
