"""`hil emulator simulate` agrees with the predictions for the vendor's vectors in all four states."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from harness import cli

VECTORS = Path(__file__).resolve().parents[2] / "fixtures/vectors"
MANIFEST = json.loads((VECTORS / "manifest.json").read_text())
ROOT_A = MANIFEST["roots"]["SR_A"]
OPTIONS = {
    "no_root": [],
    "rootA": ["--root", ROOT_A],
    "rootA_csk0_cancelled": ["--root", ROOT_A, "--cancelled", "0"],
    "rootB": ["--root", MANIFEST["roots"]["SR_B"]],
}


def simulate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["hil", "emulator", "simulate", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    output = capsys.readouterr()
    return int(ended.value.code or 0), output.out, output.err


@pytest.mark.parametrize("state", OPTIONS)
def test_every_vector_is_answered_as_predicted(
    state: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = MANIFEST["files"]
    files = [str(VECTORS / entry["file"]) for entry in entries]
    code, out, _ = simulate(monkeypatch, capsys, "--section", "SR", *OPTIONS[state], *files, "-o", "json")
    assert code == 0
    answers = json.loads(out)
    assert [answer["file"] for answer in answers] == files
    expected = {entry["file"]: entry["card_prediction"][state][0] for entry in entries}
    assert len(expected) >= 15
    assert dict(zip(expected, (answer["code"] for answer in answers), strict=True)) == expected
    assert [answer["accepted"] for answer in answers] == [code == "0x00" for code in expected.values()]
    assert all(answer["reason"] for answer in answers)


def test_the_bmc_section_has_the_factory_root_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def code(*options: str) -> str:
        file = str(VECTORS / "bmc_unsigned.bin")
        _, out, _ = simulate(monkeypatch, capsys, *options, file, "-o", "json")
        return str(json.loads(out)[0]["code"])

    assert code() == "0x00"
    assert code("--bmc-root", "factory") == "0x11"
    assert code("--root", ROOT_A) == "0x11"
    assert code("--root", ROOT_A, "--bmc-root", "none") == "0x00"
    assert code("--section", "BMC", "--root", ROOT_A) == "0x11"


def test_a_defective_card_can_be_asked_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(VECTORS / "sr_A_csk0.bin")
    options = [*OPTIONS["rootA_csk0_cancelled"], "--profile", "disabled_checks=csk-cancelled"]
    _, out, _ = simulate(monkeypatch, capsys, *options, file)
    assert "accepted" in out
    assert "0x00" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--root", "abc"], "no root entry hash"),
        (["--root", ROOT_A, "--cancelled", "128"], "0 to 127"),
        (["--root", ROOT_A, "--cancelled", "a"], "no CSK id"),
        (["--cancelled", "1"], "has no cancelled CSKs"),
        (["--profile", "enforcment=at-once"], "Did you mean 'enforcement'?"),
        (["--profile", "enforcement=never"], "allowed are 'after-reset', 'at-once'"),
        (["--section", "BMC", "--root", ROOT_A, "--bmc-root", "none"], "already"),
    ],
)
def test_values_that_no_card_can_have_are_told(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = simulate(monkeypatch, capsys, *arguments, str(VECTORS / "sr_A_csk0.bin"))
    assert (code, out) == (2, "")
    assert said in err


def test_a_missing_file_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = simulate(monkeypatch, capsys, str(tmp_path / "none.bin"))
    assert code == 2
    assert "none.bin cannot be read" in err


def test_a_file_without_end_is_refused_as_too_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = simulate(monkeypatch, capsys, "/dev/zero")
    assert (code, out) == (0, "/dev/zero  refused   -     the driver refuses: longer than 58720256 bytes\n")


def test_the_name_of_a_file_cannot_steer_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x\x1b[2J\nimage.bin  accepted"
    file.write_bytes(b"short")
    _, shown, _ = simulate(monkeypatch, capsys, str(file))
    assert r"x\x1b[2J\nimage.bin  accepted  refused" in shown
    assert len(shown.splitlines()) == 1
