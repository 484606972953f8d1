"""A Docker engine of the harness's own: it checks certificates, several run at once, and nothing stays."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.engine import private_engine
from support.processes import alive, wait_until

from harness.errors import BlockedError, ConfigurationError, InfrastructureError
from harness.registry.assembled import ACCOUNT, RegistryLab
from harness.registry.configuration import RegistrySettings
from harness.registry.engines import private
from harness.registry.engines.private import PrivateEngine, find_engine

AUTH = {"username": ACCOUNT, "password": "lab-only"}


@pytest.fixture(scope="module")
def engine() -> Iterator[PrivateEngine]:
    with private_engine() as started:
        yield started


@pytest.fixture
def lab(tmp_path: Path, program: Path) -> Iterator[RegistryLab]:
    """A registry with TLS and tokens where an engine does check certificates."""
    with RegistryLab(tmp_path / "lab", RegistrySettings(address="::1"), program=program) as made:
        yield made


def load_image(engine: PrivateEngine, repository: str) -> None:
    """Give the engine an image of one file."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        member = tarfile.TarInfo("file")
        member.size = 5
        archive.addfile(member, io.BytesIO(b"hello"))
    client = engine.client()
    said = client.api.import_image_from_data(content.getvalue(), repository=repository, tag="1")
    client.close()
    assert "sha256:" in said


def pushed(engine: PrivateEngine, repository: str) -> str:
    """Push and return the last line of what the engine answers."""
    client = engine.client()
    said: str = client.api.push(repository, tag="1", auth_config=AUTH)
    client.close()
    return said.strip().splitlines()[-1]


class TestItsRegistry:
    def test_an_authority_is_believed_only_once_it_was_named(
        self, engine: PrivateEngine, lab: RegistryLab
    ) -> None:
        registry = f"{engine.registry_host()}:{lab.registry.port}"
        load_image(engine, f"{registry}/a/b")
        mark = engine.log_mark()
        assert "x509: certificate signed by unknown authority" in pushed(engine, f"{registry}/a/b")
        assert any("unknown authority" in entry.message for entry in engine.logs(mark))
        engine.trust(registry, lab.authority.file)
        assert json.loads(pushed(engine, f"{registry}/a/b"))["aux"]["Tag"] == "1"

    @pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "127.0.0.9"])
    def test_a_registry_whose_certificate_nobody_would_check_is_refused(
        self, engine: PrivateEngine, lab: RegistryLab, name: str
    ) -> None:
        with pytest.raises(ConfigurationError, match=r"127\.0\.0\.0/8"):
            engine.trust(f"{name}:{lab.registry.port}", lab.authority.file)

    def test_a_name_that_leads_nowhere_is_refused(self, engine: PrivateEngine, lab: RegistryLab) -> None:
        with pytest.raises(ConfigurationError, match="cannot be resolved"):
            engine.trust("nowhere.invalid:5000", lab.authority.file)

    def test_the_machine_is_not_changed(self, engine: PrivateEngine, lab: RegistryLab) -> None:
        engine.trust(f"registry.local:{lab.registry.port}", lab.authority.file)
        assert "::1 registry.local" not in Path("/etc/hosts").read_text()
        assert not Path(f"/etc/docker/certs.d/registry.local:{lab.registry.port}").exists()
        assert str(engine.enclosure.folder) not in Path("/proc/self/mountinfo").read_text()


class TestWhatItIs:
    def test_it_says_its_version_as_the_program_does(self, engine: PrivateEngine) -> None:
        program = find_engine(install=False)  # a folder of system programs need not be in PATH
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        assert engine.version in said

    def test_it_says_how_it_keeps_images(self, engine: PrivateEngine) -> None:
        assert engine.storage_driver in ("overlay2", "vfs")
        assert (engine.enclosure.folder / "data" / engine.storage_driver).is_dir()

    def test_two_run_at_once_and_know_nothing_of_each_other(self, engine: PrivateEngine) -> None:
        with private_engine() as other:
            load_image(other, "only/here")
            assert images(other) == ["only/here:1"]
            assert "only/here:1" not in images(engine)
        assert engine.running


def images(engine: PrivateEngine) -> list[str]:
    client = engine.client()
    found = [tag for image in client.images.list() for tag in image.tags]
    client.close()
    return found


class TestItsEnd:
    def test_images_are_kept_over_a_stop_and_a_kill(self, engine: PrivateEngine) -> None:
        load_image(engine, "kept/image")
        engine.stop()
        assert not engine.running
        engine.start()
        os.kill(dockerd_of(engine), signal.SIGKILL)
        wait_until(lambda: not engine.running, "the engine to end with its dockerd")
        engine.start()
        assert "kept/image:1" in images(engine)

    def test_the_kill_of_the_harness_leaves_nothing(self, engine: PrivateEngine) -> None:
        """Nothing: no process and no file; its mounts were never the machine's."""
        code = (
            "import sys\n"
            "from harness.registry.engines.private import PrivateEngine\n"
            "engine = PrivateEngine(); engine.start()\n"
            "print(engine.enclosure.folder, flush=True); sys.stdin.read()\n"
        )
        harness = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with harness:
            assert harness.stdout
            folder = harness.stdout.readline().strip()
            inside = mentioning(folder)
            assert {"dockerd", "containerd"} <= {name_of(pid) for pid in inside}
            harness.kill()
        wait_until(lambda: not any(map(alive, inside)), f"the processes {inside} to end")
        wait_until(lambda: not Path(folder).exists(), f"{folder} to be removed")
        wait_until(lambda: not mentioning(folder), "what removes it to end")

    def test_closing_removes_everything(self) -> None:
        with private_engine() as other:
            folder = other.enclosure.folder
            load_image(other, "a/b")
        assert not folder.exists()
        assert not mentioning(str(folder))


def dockerd_of(engine: PrivateEngine) -> int:
    """Return the engine's dockerd, found by its command line."""
    found: list[int] = []

    def one() -> bool:
        # What it starts bears its name for a moment.
        found[:] = [pid for pid in mentioning(str(engine.enclosure.folder)) if name_of(pid) == "dockerd"]
        return len(found) == 1

    wait_until(one, "the engine to have one dockerd")
    return found[0]


def mentioning(folder: str) -> list[int]:
    """Return the living processes that have ``folder`` in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if folder.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return [pid for pid in found if alive(pid)]


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


class TestWhatIsInItsWay:
    def test_a_path_too_long_for_its_sockets(self, engine: PrivateEngine, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="too long"):
            PrivateEngine(tmp_path / ("x" * 80)).start()

    def test_a_folder_of_somebody_else_is_left_alone(self, engine: PrivateEngine, tmp_path: Path) -> None:
        (tmp_path / "mine").write_text("precious")
        other = PrivateEngine(tmp_path)
        with pytest.raises(ConfigurationError, match="left alone"):
            other.start()
        other.close()
        assert (tmp_path / "mine").read_text() == "precious"

    def test_one_that_runs_is_not_started_twice(self, engine: PrivateEngine) -> None:
        with pytest.raises(ConfigurationError, match="runs already"):
            PrivateEngine(engine.enclosure.folder).start()
        assert engine.running

    def test_an_engine_that_ends_at_once_says_why(self, engine: PrivateEngine, tmp_path: Path) -> None:
        program = tmp_path / "dockerd"
        program.write_text("#!/bin/sh\necho 'level=fatal msg=\"no space left on device\"'\nexit 1\n")
        program.chmod(0o755)
        failing = PrivateEngine(program=program)
        with closing(failing):
            with pytest.raises(InfrastructureError, match="ended at once: no space left on device"):
                failing.start()
            assert not failing.running

    def test_without_root_it_is_blocked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        with pytest.raises(BlockedError, match="root"):
            PrivateEngine(Path("/tmp/never")).start()


class TestWhereNoneCanRun:
    """It is looked before a package is installed."""

    @pytest.fixture(autouse=True)
    def _root_without_the_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def install(packages: list[str]) -> None:
            pytest.fail(f"{packages} were to be installed")

        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(private, "installed", lambda program: None)
        monkeypatch.setattr(private, "install_packages", install)

    def test_without_control_groups(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(private, "_CGROUPS", tmp_path)
        with pytest.raises(BlockedError, match="needs control groups"):
            find_engine()

    def test_without_namespaces(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "cgroup.procs").touch()
        monkeypatch.setattr(private, "_CGROUPS", tmp_path)
        said = "unshare: unshare failed: Operation not permitted"
        monkeypatch.setattr(private, "_NAMESPACES", ("sh", "-c", f"echo '{said}' >&2; exit 1"))
        with pytest.raises(BlockedError, match=f"root gets none here: {said}"):
            find_engine()
