"""scripts/bootstrap with stand-ins for Python and apt-get: what it picks, says, repeats and leaves alone."""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
TOOLS = ("sh", "cat", "cksum", "dirname", "mkdir", "rm", "cp", "chmod")

#: A Python that knows how old it is, whether it has ensurepip, and writes down what it was asked to do.
STAND_IN = """\
#!/bin/sh
case "$*" in
*"version_info < "*) exit {too_old} ;;
*"import venv, ensurepip"*) [ -e "{ensurepip}" ] || exit 1 ;;
*"%d.%d-venv"*) echo python3.11-venv ;;
*--version*) [ "$1" = --version ] && echo "Python {version}" ;;
"-m venv"*)
    echo "$*" >>"$CALLS"
    for venv in "$@"; do :; done
    rm -rf "$venv" && mkdir -p "$venv/bin" && cp "$0" "$venv/bin/python" ;;
"-m pip install"*)
    echo "$*" >>"$CALLS"
    [ ! -e "$CALLS.pip-fails" ] || exit 1
    case "$*" in *--editable*) here=$(dirname "$0"); cp "$0" "$here/hil" ;; esac ;;
esac
exit 0
"""


@dataclass
class Sandbox:
    """A copy of what bootstrap reads, and a PATH that holds nothing but what a test puts there."""

    root: Path
    user: int = 1000
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.project = self.root / "project"
        self.bin = self.root / "bin"
        self.calls_file = self.root / "calls"
        (self.project / "scripts").mkdir(parents=True)
        self.bin.mkdir()
        shutil.copy(PROJECT / "scripts/bootstrap", self.project / "scripts/bootstrap")
        for name in ("pyproject.toml", "requirements.lock"):
            (self.project / name).write_text(f"{name}\n")
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found
            (self.bin / tool).symlink_to(found)
        self.program("id", 'echo "$USER_ID"')

    def program(self, name: str, text: str) -> Path:
        path = self.bin / name
        path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def python(self, name: str, version: str, *, ensurepip: bool = True) -> None:
        mark = self.root / f"{name}-has-ensurepip"
        if ensurepip:
            mark.touch()
        too_old = int(tuple(map(int, version.split("."))) < (3, 11))
        self.program(name, STAND_IN.format(version=version, ensurepip=mark, too_old=too_old))

    def run(self) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(self.project / "scripts/bootstrap")],
            env={"PATH": str(self.bin), "CALLS": str(self.calls_file), "USER_ID": str(self.user)}
            | self.environ,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )

    def calls(self) -> list[str]:
        """Return what the Pythons and apt-get were asked since the last time."""
        text = self.calls_file.read_text() if self.calls_file.exists() else ""
        self.calls_file.write_text("")
        return text.splitlines()


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def test_sets_up_with_locked_versions_and_does_nothing_the_second_time(sandbox: Sandbox) -> None:
    sandbox.python("python3", "3.12.3")
    first = sandbox.run()
    assert first.returncode == 0, first.stderr
    assert "Python 3.12.3" in first.stderr
    made, build_tool, install = sandbox.calls()
    assert made == f"-m venv --clear {sandbox.project}/.venv"
    assert all("--constraint requirements.lock" in call for call in (build_tool, install))
    assert "--editable .[dev]" in install
    second = sandbox.run()
    assert (second.returncode, second.stdout, second.stderr, sandbox.calls()) == (0, "", "", [])


@pytest.mark.parametrize("name", ["pyproject.toml", "requirements.lock"])
def test_installs_again_in_place_when_what_it_is_made_from_changes(sandbox: Sandbox, name: str) -> None:
    sandbox.python("python3", "3.12.3")
    sandbox.run()
    sandbox.calls()
    (sandbox.project / name).write_text("changed")
    assert sandbox.run().returncode == 0
    assert [call.split()[1] for call in sandbox.calls()] == ["pip", "pip"]


def test_takes_the_newest_and_passes_over_what_is_too_old_or_lacks_ensurepip(sandbox: Sandbox) -> None:
    sandbox.python("python3.13", "3.13.1", ensurepip=False)
    sandbox.python("python3.11", "3.11.2")
    sandbox.python("python3", "3.9.2")
    assert "Python 3.11.2" in sandbox.run().stderr


def test_a_broken_shim_is_not_a_python(sandbox: Sandbox) -> None:
    sandbox.program("python3.13", "echo 'shim: python3.13: command not found' >&2; exit 127")
    sandbox.python("python3", "3.11.2")
    done = sandbox.run()
    assert done.returncode == 0
    assert "shim" not in done.stderr


@pytest.mark.parametrize("version", ["3.10.12", None])
def test_says_what_to_install_where_no_python_is_new_enough(sandbox: Sandbox, version: str | None) -> None:
    if version:
        sandbox.python("python3", version)
    done = sandbox.run()
    assert done.returncode == 2
    assert "Python 3.11 or newer is needed" in done.stderr
    assert (f"Python {version}" if version else "none") in done.stderr
    assert "apt-get install python3" in done.stderr
    assert not (sandbox.project / ".venv").exists()


def test_a_python_named_by_hand_is_the_only_one_tried(sandbox: Sandbox) -> None:
    sandbox.python("python3", "3.12.3")
    sandbox.python("mine", "3.11.9")
    sandbox.environ["PYTHON"] = "mine"
    assert "Python 3.11.9" in sandbox.run().stderr
    sandbox.environ["PYTHON"] = "none-such"
    (sandbox.project / "pyproject.toml").write_text("changed")
    done = sandbox.run()
    assert done.returncode == 2
    assert "PYTHON=none-such" in done.stderr


def test_user_without_ensurepip_is_told_which_package_to_install(sandbox: Sandbox) -> None:
    sandbox.python("python3", "3.11.2", ensurepip=False)
    sandbox.program("apt-get", 'echo "apt-get $*" >>"$CALLS"')
    done = sandbox.run()
    assert done.returncode == 2
    assert "sudo apt-get install python3.11-venv" in done.stderr
    assert sandbox.calls() == []


def test_root_on_debian_installs_the_package_and_says_so(sandbox: Sandbox) -> None:
    sandbox.user = 0
    sandbox.python("python3", "3.11.2", ensurepip=False)
    mark = sandbox.root / "python3-has-ensurepip"
    sandbox.program("apt-get", f'echo "apt-get $*" >>"$CALLS"; case "$*" in install*) : >"{mark}" ;; esac')
    done = sandbox.run()
    assert done.returncode == 0, done.stderr
    assert "installing python3.11-venv with apt-get, as this runs as root" in done.stderr
    assert sandbox.calls()[:2] == [
        "apt-get update",
        "apt-get install -y --no-install-recommends python3.11-venv",
    ]


def test_failed_install_says_so_and_the_next_try_starts_afresh(sandbox: Sandbox) -> None:
    sandbox.python("python3", "3.12.3")
    fails = Path(f"{sandbox.calls_file}.pip-fails")
    fails.touch()
    broken = sandbox.run()
    assert broken.returncode == 2
    assert "pip could not install everything" in broken.stderr
    fails.unlink()
    sandbox.calls()
    assert sandbox.run().returncode == 0
    assert [call.split()[1] for call in sandbox.calls()] == ["venv", "pip", "pip"]


def test_environment_of_a_copied_project_is_made_anew(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.python("python3", "3.12.3")
    sandbox.run()
    shutil.copytree(sandbox.project, tmp_path / "copy")
    sandbox.project = tmp_path / "copy"
    sandbox.calls()
    assert sandbox.run().returncode == 0
    assert sandbox.calls()[0] == f"-m venv --clear {tmp_path}/copy/.venv"


def test_environment_whose_python_is_gone_is_made_anew(sandbox: Sandbox) -> None:
    sandbox.python("python3", "3.12.3")
    sandbox.run()
    (sandbox.project / ".venv/bin/python").unlink()
    sandbox.calls()
    assert sandbox.run().returncode == 0
    assert [call.split()[1] for call in sandbox.calls()] == ["venv", "pip", "pip"]


def test_lock_names_every_requirement_and_no_index() -> None:
    import tomllib

    from packaging.requirements import Requirement

    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    lines = (PROJECT / "requirements.lock").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    stated = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(line for extra in project["project"]["optional-dependencies"].values() for line in extra),
    ]
    for requirement in map(Requirement, stated):
        assert requirement.name in pins
        assert requirement.specifier.contains(pins[requirement.name]), requirement
    assert not any(os.sep in line or ":" in line for line in lines if not line.startswith("#"))
