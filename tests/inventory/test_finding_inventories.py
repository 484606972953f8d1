"""Which file is the inventory, and what is no inventory at all."""

from pathlib import Path

import pytest
from support.inventories import GOOD, rejected

from harness.errors import ConfigurationError
from harness.inventory.load import PATH_VARIABLE, find_inventory, load_inventory


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no mapping"),
        ("- 1\n", "holds no mapping"),
        ("version: 1\nlabs: [\n", ":3: "),
        ("\tversion: 1\n", ":1: "),
        ("a: 1\n---\na: 2\n", "expected a single document"),
        ("a: " + "{a: " * 3000 + "}" * 3000, "is nested too deeply"),
        ("version: " + "9" * 5000, "holds a value that cannot be read"),
        ("version: 2020-13-45", "holds a value that cannot be read"),
        (
            "a0: &a0 [x, x, x, x]\n"
            + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
            "its aliases make more than 200000 values",
        ),
    ],
    ids=lambda value: value[:12],
)
def test_what_is_not_an_inventory_at_all(write, text: str, said: str) -> None:
    assert said in rejected(write(text))


def test_binary_file_is_not_a_text_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00")
    assert "is not a text file" in rejected(tmp_path / "x")


def test_a_file_that_does_not_end_is_not_taken_into_memory() -> None:
    with pytest.raises(ConfigurationError, match="/dev/zero is no inventory: it is longer than"):
        load_inventory("/dev/zero")


def test_a_mark_of_the_byte_order_is_no_content(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load_inventory(tmp_path / "x.yaml").default_lab == "bench"


def test_missing_file_and_directory(tmp_path: Path) -> None:
    assert "No such file" in rejected(tmp_path / "none.yaml")
    assert "Is a directory" in rejected(tmp_path)


def test_inventory_is_found_here_above_or_by_the_variable(
    write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(GOOD)
    below = tmp_path / "a/b"
    below.mkdir(parents=True)
    monkeypatch.delenv(PATH_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    assert find_inventory() == Path("inventory.yaml")
    monkeypatch.chdir(below)
    assert find_inventory() == path
    monkeypatch.setenv(PATH_VARIABLE, "other.yaml")
    assert find_inventory() == Path("other.yaml")


def test_no_inventory_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PATH_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=r"no inventory\.yaml") as caught:
        load_inventory()
    assert PATH_VARIABLE in caught.value.hint
