"""A pytest run that asks for no lab pays next to nothing for the plugin."""

import subprocess
import sys
from pathlib import Path

HEAVY = ("paramiko", "cryptography", "pydantic", "rich", "ruamel", "typer", "docker", "allure")

PLAIN = f"""
import sys

def test_plain():
    loaded = [name for name in {HEAVY!r} if name in sys.modules]
    assert not loaded, loaded
"""


def test_nothing_heavy_is_imported_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text(PLAIN, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:allure_pytest", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert "held to the truth" not in run.stdout
    assert not (tmp_path / "reports").exists()
