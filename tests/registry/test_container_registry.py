"""A real registry in a container: the protocol of one that is a plain process, and nothing stays."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.engine import private_engine
from support.processes import alive, wait_until
from support.raw_push import RawRegistry

from harness.errors import ConfigurationError, DeadlineError, InfrastructureError
from harness.registry.configuration import RegistrySettings
from harness.registry.container import ContainerRegistry
from harness.registry.engines.machine import MachineEngine
from harness.registry.engines.private import PrivateEngine
from harness.registry.images import ImageRecipe, make_image, sized_layers
from harness.registry.ports import listens
from harness.registry.service import How, RegistryService
from harness.registry.tls import LabAuthority
from harness.registry.wire import Wire

IMAGE = make_image(ImageRecipe(sized_layers(1, 1000)))


@pytest.fixture(scope="module")
def engine() -> Iterator[PrivateEngine]:
    with private_engine() as started:
        yield started


@pytest.fixture
def contained(engine: PrivateEngine, tmp_path: Path, program: Path) -> Iterator[ContainerRegistry]:
    """One that runs, on plain HTTP."""
    with ContainerRegistry(engine, tmp_path / "registry", program=program) as made:
        made.start()
        yield made


def containers(engine: PrivateEngine) -> list[str]:
    client = engine.client()
    found = [container.id for container in client.containers.list(all=True, ignore_removed=True)]
    client.close()
    return found


def namespace_of(pid: int, kind: str) -> str:
    return str(Path(f"/proc/{pid}/ns/{kind}").readlink())


def test_its_process_is_in_a_container_and_on_this_machines_network(
    contained: ContainerRegistry, engine: PrivateEngine
) -> None:
    service: RegistryService = contained
    running = service.instance
    assert running is not None
    assert Path(f"/proc/{running.pid}/cmdline").read_bytes().split(b"\0")[:2] == [b"registry", b"serve"]
    assert namespace_of(running.pid, "mnt") != namespace_of(os.getpid(), "mnt")
    assert namespace_of(running.pid, "net") == namespace_of(os.getpid(), "net")
    assert listens(running.pid, contained.port)
    assert len(containers(engine)) == 1
    with pytest.raises(ConfigurationError, match="runs already"):
        contained.start()


@pytest.mark.parametrize("how", ["TERM", "KILL"])
def test_restart_tells_both_processes_and_keeps_store_port_and_log(
    contained: ContainerRegistry, how: How
) -> None:
    raw = RawRegistry(contained.endpoint.url)
    upload = raw.begin_upload("a/b")
    raw.push("a/b", "v1", IMAGE)
    before, port, mark = contained.instance, contained.port, contained.log_mark()
    done = contained.restart(how, held="PUT manifest")
    assert (done.before, done.after, done.held) == (before, contained.instance, "PUT manifest")
    assert not alive(done.before.pid)
    assert contained.port == port
    assert raw.ask("GET", "/v2/a/b/tags/list")[2] == b'{"name":"a/b","tags":["v1"]}\n'
    assert raw.ask("GET", upload)[0] == 204
    assert (Path(contained.storage) / "docker/registry/v2/repositories/a/b/_manifests/tags/v1").is_dir()
    assert any("listening on" in entry.message for entry in contained.logs(mark))
    assert len(contained.logs()) > len(contained.logs(mark))


def test_an_end_that_nobody_asked_for_is_seen(contained: ContainerRegistry, engine: PrivateEngine) -> None:
    running = contained.instance
    assert running is not None
    os.kill(running.pid, signal.SIGKILL)
    wait_until(lambda: contained.instance is None, "the end to be seen")
    with pytest.raises(InfrastructureError, match="does not run"):
        contained.wait_ready()
    assert containers(engine) == []
    assert contained.start().number == 2


def test_a_paused_one_answers_nothing_until_it_goes_on(contained: ContainerRegistry) -> None:
    running = contained.instance
    assert running is not None
    contained.pause()
    assert Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    with pytest.raises(DeadlineError):
        contained.wait_ready(deadline=0.2)
    contained.resume()
    contained.wait_ready()
    contained.pause()
    contained.stop()
    assert not alive(running.pid)


def test_read_only_garbage_collection_and_metrics(contained: ContainerRegistry) -> None:
    raw = RawRegistry(contained.endpoint.url)
    raw.push("a/b", "v1", IMAGE)
    assert "registry_http_requests_total" in contained.metrics()
    contained.read_only(True)
    assert raw.ask("POST", "/v2/a/b/blobs/uploads/")[0] == 405
    contained.read_only(False)
    done = contained.garbage_collect(around="nothing", dry_run=True)
    assert done.exit_code == 0
    assert "a/b: marking manifest" in done.text


def test_one_that_ends_at_once_says_why(engine: PrivateEngine, tmp_path: Path, program: Path) -> None:
    identity = LabAuthority(tmp_path / "tls").issue("registry")
    identity.key.write_bytes(b"no key")
    settings = RegistrySettings(tls=identity)
    with (
        ContainerRegistry(engine, tmp_path / "r", settings, program=program) as made,
        pytest.raises(InfrastructureError, match="failed to find any PEM data in key input"),
    ):
        made.start()
    assert containers(engine) == []


def test_a_port_that_is_taken_is_told_with_its_holder(
    engine: PrivateEngine, tmp_path: Path, program: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = RegistrySettings(port=taken.getsockname()[1])
        with ContainerRegistry(engine, tmp_path / "r", settings, program=program) as made:
            with pytest.raises(InfrastructureError, match=f"process {os.getpid()}"):
                made.start()
            assert containers(engine) == []


def test_tls_is_read_from_this_machines_files_at_each_start(
    engine: PrivateEngine, tmp_path: Path, program: Path
) -> None:
    authority = LabAuthority(tmp_path / "tls")
    settings = RegistrySettings(address="::1", tls=authority.issue("registry"))
    with ContainerRegistry(engine, tmp_path / "r", settings, program=program) as made:
        made.start()
        first = certificate_of(made)
        authority.issue("registry")
        assert certificate_of(made) == first
        made.restart()
        assert certificate_of(made) != first


def certificate_of(registry: ContainerRegistry) -> str:
    """Return what the registry shows, checked against its authority."""
    with Wire(registry.endpoint) as wire, wire.get("/v2/") as answer:
        assert answer.status == 200
    asked = ["openssl", "s_client", "-connect", registry.endpoint.url.removeprefix("https://")]
    shown = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    assert "BEGIN CERTIFICATE" in shown
    return shown.partition("-----END")[0].partition("-----BEGIN")[2]


def test_an_image_that_the_engine_has_is_used_by_its_name(
    contained: ContainerRegistry, engine: PrivateEngine, tmp_path: Path
) -> None:
    client = engine.client()
    client.containers.list()[0].image.tag("registry", "2")
    client.close()
    with ContainerRegistry(engine, tmp_path / "other", image="registry:2") as made:
        made.start()
        RawRegistry(made.endpoint.url).push("a/b", "v1", IMAGE)
    with (
        ContainerRegistry(engine, tmp_path / "none", image="registry:none") as made,
        pytest.raises(ConfigurationError, match="does not have the image registry:none"),
    ):
        made.start()


def test_the_end_of_the_engine_is_its_end(tmp_path: Path, program: Path) -> None:
    with (
        private_engine() as short_lived,
        ContainerRegistry(short_lived, tmp_path / "registry", program=program) as made,
    ):
        pid = made.start().pid
        short_lived.kill()
        wait_until(lambda: made.instance is None, "the end to be seen")
        assert not alive(pid)
        with pytest.raises(InfrastructureError, match="does not start a registry"):
            made.start()


def test_closing_leaves_neither_container_nor_image(
    engine: PrivateEngine, tmp_path: Path, program: Path
) -> None:
    client = engine.client()
    for image in client.images.list():
        client.images.remove(image.id, force=True)
    with ContainerRegistry(engine, tmp_path / "registry", program=program) as made:
        pid = made.start().pid
        assert len(client.images.list()) == 1
    assert not alive(pid)
    assert client.images.list() == []
    assert client.containers.list(all=True, ignore_removed=True) == []
    client.close()


def test_the_kill_of_the_harness_leaves_nothing_in_an_engine_that_is_not_ours(
    engine: PrivateEngine, tmp_path: Path, program: Path
) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from harness.registry.engines.choose import open_engine\n"
        "from harness.registry.container import ContainerRegistry\n"
        "made = ContainerRegistry(open_engine(), Path(sys.argv[1]), program=Path(sys.argv[2]))\n"
        "print(made.start().pid, flush=True); made.pause(); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "registry"), str(program)],
        env=os.environ | {"DOCKER_HOST": engine.url},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as harness:
        assert harness.stdout
        said = harness.stdout.readline()
        harness.kill()
    pid = int(said)
    wait_until(lambda: not alive(pid), "the registry to end")
    wait_until(lambda: containers(engine) == [], "its container to be removed")


def test_a_process_that_is_not_the_containers_is_never_taken_for_it(
    engine: PrivateEngine, tmp_path: Path, program: Path
) -> None:
    """An engine in a process namespace of its own names other numbers than those of this machine."""
    blind = MachineEngine(engine.url)
    with (
        ContainerRegistry(blind, tmp_path / "registry", program=program) as made,
        pytest.raises(InfrastructureError, match="not found on this machine"),
    ):
        made.start()
    assert containers(engine) == []


def test_control_groups_go_with_the_engine(tmp_path: Path, program: Path) -> None:
    def groups() -> list[Path]:
        return [path for path in Path("/sys/fs/cgroup").rglob("hil-engine-*") if name in path.name]

    with private_engine() as short_lived:
        name = short_lived.enclosure.folder.name
        with ContainerRegistry(short_lived, tmp_path / "registry", program=program) as made:
            made.start()
            assert groups()
    assert not groups()
