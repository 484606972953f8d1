"""What every start costs: `hil --help`, a small `hil` command, pytest with the idle plugin."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
HIL = str(Path(sys.executable).with_name("hil"))
PYTEST = str(Path(sys.executable).with_name("pytest"))


def fastest_ms(command: list[str], directory: Path, times: int = 9) -> float:
    """Return the shortest run time of ``command`` in milliseconds: the one that others disturbed least."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run(command, cwd=directory, check=True, capture_output=True)
        taken.append((time.perf_counter() - start) * 1000)
    return min(taken)


@pytest.mark.parametrize(
    ("command", "limit"),
    [
        ([sys.executable, "-c", "pass"], None),
        ([HIL, "--help"], 150),
        ([HIL, "inventory", "check"], None),
    ],
    ids=["python", "hil --help", "hil inventory check"],
)
def test_start_of_a_command(command: list[str], limit: float | None) -> None:
    taken = fastest_ms(command, PROJECT)
    print(f"\n{Path(command[0]).name} {' '.join(command[1:])}: {taken:.0f} ms")
    assert limit is None or taken < limit


def test_start_of_pytest_with_the_idle_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text("def test_nothing(): pass\n")
    quiet = [PYTEST, "-q", "-p", "no:cacheprovider", "-p", "no:allure_pytest", "test_nothing.py"]
    with_plugin, without = (fastest_ms(command, tmp_path) for command in (quiet, [*quiet, "-p", "no:hil"]))
    print(f"\npytest: {without:.0f} ms, with the idle plugin {with_plugin - without:+.0f} ms")
    assert with_plugin - without < 50
