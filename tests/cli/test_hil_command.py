"""The `hil` command itself: quick help, exit codes, errors without traceback, completion."""

import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer
from ruamel.yaml import YAML
from typer.testing import CliRunner

from harness import cli
from harness.errors import (
    BlockedError,
    ConfigurationError,
    DeviceError,
    HarnessBug,
    InfrastructureError,
    RefusedError,
)

PROJECT = Path(__file__).parents[2]


def hil(*words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", "from harness.cli import main; main()", *words],
        cwd=PROJECT,
        env={key: value for key, value in os.environ.items() if key != "HIL_INVENTORY"} | environ,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_help_names_every_sub_command_and_imports_none() -> None:
    probe = (
        "import sys; from harness.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'rich', 'pydantic', 'paramiko', 'cryptography', 'pytest', 'ruamel.yaml'}\n"
        "sys.exit(f'imported: {heavy & sys.modules.keys()}' if heavy & sys.modules.keys() else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, "--help"], capture_output=True, text=True, timeout=60, cwd=PROJECT
    )
    assert done.returncode == 0, done.stderr
    for name, (_, text) in cli.SUB_COMMANDS.items():
        assert f"  {name} " in done.stdout
        assert text in done.stdout


def test_every_sub_command_names_a_module_that_exists() -> None:
    for target, _ in cli.SUB_COMMANDS.values():
        assert find_spec(target.partition(":")[0]) is not None, target


def test_usage_errors_exit_with_2_and_suggest() -> None:
    unknown = hil("inventry", "check")
    assert unknown.returncode == 2
    assert "Did you mean 'inventory'?" in unknown.stderr
    assert hil("inventory", "check", "--no-such-option").returncode == 2


def test_version() -> None:
    assert hil("--version").stdout.startswith("hil 0.")


@pytest.mark.parametrize(
    ("words", "position", "offered"),
    [
        ("hil inv", 1, "inventory"),
        ("hil inventory sch", 2, "schema"),
        ("hil inventory check --cred", 3, "--credentials"),
        ("hil run --release stx-2", 3, "stx-2020-07"),
        ("hil run --without-defect old", 3, "old-flag-kept"),
        ("hil defects show old", 3, "old-flag-kept"),
    ],
)
def test_shell_completion(words: str, position: int, offered: str) -> None:
    done = hil(_HIL_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(position))
    assert offered in done.stdout.split()


@pytest.fixture
def ends_with(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run `hil` with a sub-command that raises; return exit code and what was printed on standard error."""

    def run(error: BaseException) -> tuple[object, str]:
        app = typer.Typer(add_completion=False)

        @app.command()
        def fail() -> None:
            raise error

        monkeypatch.setattr(cli, "load_command", lambda name: typer.main.get_command(app))
        monkeypatch.setattr(sys, "argv", ["hil", "judge"])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return caught.value.code, capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ConfigurationError, 2),
        (InfrastructureError, 3),
        (BlockedError, 3),
        (RefusedError, 4),
        (DeviceError, 1),
    ],
)
def test_error_of_ours_is_told_without_traceback(ends_with, kind: type, code: int) -> None:
    assert ends_with(kind("The card is gone.", hint="Look for it.")) == (
        code,
        "Error: The card is gone.\n  hint: Look for it.\n",
    )


def test_a_path_that_the_file_system_refuses_is_told_without_traceback(ends_with) -> None:
    error = PermissionError(errno.EACCES, "Permission denied", "/root/reports/index.sqlite")
    assert ends_with(error) == (
        3,
        "Error: /root/reports/index.sqlite: Permission denied.\n"
        "  hint: Name a place that you may use, or have its owner permit it.\n",
    )


@pytest.mark.parametrize(
    "error",
    [
        HarnessBug("cannot be"),
        ZeroDivisionError("cannot be"),
        FileNotFoundError(errno.ENOENT, "cannot be", "here"),
        PermissionError(errno.EPERM, "cannot be"),
    ],
)
def test_anything_else_is_a_bug_of_the_harness_and_says_so(ends_with, error: Exception) -> None:
    code, printed = ends_with(error)
    assert code == 5
    assert "Traceback" in printed
    assert "cannot be" in printed.splitlines()[-2]
    assert "bug of the harness" in printed.splitlines()[-1]


def test_ctrl_c_exits_with_130_and_no_traceback(ends_with) -> None:
    code, printed = ends_with(KeyboardInterrupt())
    assert code == 130
    assert "Traceback" not in printed


def test_exit_code_of_a_sub_command_is_kept(ends_with) -> None:
    assert ends_with(typer.Exit(3))[0] == 3


def with_emulated(setting: str) -> str:
    """Return the project's inventory, with a setting of the emulator for bench1/card1."""
    card = "            identity: 64:4c:36:20:02:00\n"
    text = (PROJECT / "inventory.yaml").read_text()
    assert text.count(card) == 1
    return text.replace(card, f"{card}            emulated: {setting}\n")


def test_inventory_check_says_what_is_wrong_where(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text((PROJECT / "inventory.yaml").read_text().replace("address: 0000:1b", "adress: 0000:1b"))
    done = hil("inventory", "check", str(bad))
    assert done.returncode == 2
    assert done.stdout == ""
    assert "did you mean 'address'?" in done.stderr
    assert "Traceback" not in done.stderr
    good = hil("inventory", "check")
    assert good.returncode == 0
    assert re.fullmatch(r"inventory\.yaml: nothing wrong; .*2 registries.*\n", good.stdout)


def test_inventory_check_knows_the_profile_of_the_emulated_card(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    text = with_emulated("{profile: {copy_rat: 1}}")
    bad.write_text(text)
    done = hil("inventory", "check", str(bad))
    assert done.returncode == 2
    assert f"{bad}:{text[: text.index('copy_rat')].count(chr(10)) + 1}: " in done.stderr
    assert "'copy_rate'" in done.stderr


def test_inventory_check_finds_the_recipes_that_are_referred_to(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(with_emulated("{sr_root: root-key-X}"))
    done = hil("inventory", "check", str(bad))
    assert done.returncode == 2
    assert "bench1/card1: sr_root names the recipe 'root-key-X'" in done.stderr


def test_inventory_show_prints_an_inventory_again(tmp_path: Path) -> None:
    as_yaml = hil("inventory", "show", "-o", "yaml").stdout
    again = tmp_path / "again.yaml"
    again.write_text(as_yaml)
    # It names recipes of images, which are looked for beside it.
    (tmp_path / "fixtures").symlink_to(PROJECT / "fixtures")
    assert hil("inventory", "check", str(again)).returncode == 0
    assert json.loads(hil("inventory", "show", "-o", "json").stdout) == YAML(typ="safe").load(as_yaml)
    table = hil("inventory", "show").stdout
    assert any(row.split()[0] == "bench1" and row.endswith("none") for row in table.splitlines()[2:])


def test_inventory_schema_lists_every_key_and_is_a_json_schema() -> None:
    keys = {row.split()[0] for row in hil("inventory", "schema").stdout.splitlines()}
    assert {
        "labs.NAME.hosts.NAME.ssh.credentials.env",
        "labs.NAME.hosts.NAME.cards.NAME.irreversible",
        "labs.NAME.hosts.NAME.power.command.off",
    } <= keys
    schema = json.loads(hil("inventory", "schema", "-o", "json").stdout)
    assert schema["required"] == ["version", "default_lab", "labs"]
    assert "name" not in schema["$defs"]["Card"]["properties"]


def test_inventory_credentials_are_found_on_request(tmp_path: Path) -> None:
    file = tmp_path / "i.yaml"
    file.write_text(
        "version: 1\ndefault_lab: l\nlabs: {l: {hosts: {h: {ssh: "
        "{address: a, user: u, credentials: {env: HIL_TEST_PASSWORD}}}}}}\n"
    )
    assert hil("inventory", "check", str(file)).returncode == 0
    missing = hil("inventory", "check", str(file), "--credentials", HIL_TEST_PASSWORD="")
    assert missing.returncode == 2
    assert "HIL_TEST_PASSWORD" in missing.stderr
    found = hil("inventory", "check", str(file), "--credentials", HIL_TEST_PASSWORD="hunter2")
    assert (found.returncode, "1 secret found" in found.stdout) == (0, True)
    assert "hunter2" not in found.stdout


def commands() -> Iterator[tuple[str, ...]]:
    """The words of every command that does something."""
    for name in cli.SUB_COMMANDS:
        loaded = cli.load_command(name)
        inner = getattr(loaded, "commands", None)
        yield from ([(name, sub) for sub in inner] if inner else [(name,)])


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_every_command_shows_by_example_how_it_is_used(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(cli.root, [*words, "--help"], prog_name="hil").stdout
    assert f"hil {' '.join(words)} " in shown.split("\n", 1)[1], "an example, after the line of usage"


@pytest.mark.parametrize("name", cli.SUB_COMMANDS)
def test_the_list_of_commands_is_not_cut_off(name: str) -> None:
    shown = CliRunner().invoke(cli.root, [name, "--help"], terminal_width=80).stdout
    assert "..." not in shown.partition("Commands:")[2]
