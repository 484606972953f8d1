"""A real registry as a process of ours: started, ended, disturbed; and never taken for another one."""

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.processes import wait_until
from support.raw_push import RawRegistry

from harness.errors import ConfigurationError, DeadlineError, InfrastructureError
from harness.registry.configuration import RegistrySettings
from harness.registry.images import ImageRecipe, make_image, sized_layers
from harness.registry.ports import free_port, listens, prove_free
from harness.registry.process import ProcessRegistry
from harness.registry.service import How
from harness.registry.tls import LabAuthority
from harness.registry.wire import Endpoint, Wire

IMAGE = make_image(ImageRecipe(sized_layers(1, 1000)))


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_start_answers_on_a_port_that_is_its_own(registry: ProcessRegistry, raw: RawRegistry) -> None:
    assert registry.instance is not None
    assert registry.instance.number == 1
    assert listens(registry.instance.pid, registry.port)
    status, headers, body = raw.ask("GET", "/v2/")
    assert (status, body) == (200, b"{}")
    assert headers["docker-distribution-api-version"] == "registry/2.0"
    registry.wait_ready()


def test_it_cannot_be_started_twice(registry: ProcessRegistry) -> None:
    with pytest.raises(ConfigurationError, match="runs already"):
        registry.start()


@pytest.mark.parametrize("how", ["TERM", "KILL"])
def test_restart_tells_both_processes_and_what_was_held(
    registry: ProcessRegistry, raw: RawRegistry, how: How
) -> None:
    raw.push("a/b", "v1", IMAGE)
    port = registry.port
    before = registry.instance
    gone: list[bool] = []
    done = registry.restart(how, held="PUT manifest", between=lambda: gone.append(registry.instance is None))
    assert gone == [True]
    assert (done.before, done.after) == (before, registry.instance)
    assert done.before.pid != done.after.pid
    assert (done.how, done.held, registry.restarts) == (how, "PUT manifest", (done,))
    assert registry.port == port
    assert raw.ask("GET", "/v2/a/b/tags/list")[2] == b'{"name":"a/b","tags":["v1"]}\n'


def test_an_upload_outlives_a_restart_because_the_secret_is_fixed(
    registry: ProcessRegistry, raw: RawRegistry
) -> None:
    location = raw.begin_upload("a/b")
    registry.restart()
    status, _, body = raw.ask(
        "PUT", f"{location}&digest={IMAGE.config.digest}", IMAGE.config.read(), Content_Type="x/y"
    )
    assert status == 201, body


def test_stop_and_kill_are_done_when_they_return(registry: ProcessRegistry) -> None:
    assert registry.instance is not None
    pid = registry.instance.pid
    registry.stop()
    assert registry.instance is None
    assert not Path(f"/proc/{pid}").exists()
    prove_free("127.0.0.1", registry.port)
    registry.stop()
    registry.kill()
    with pytest.raises(InfrastructureError, match="does not run"):
        registry.restart()
    with pytest.raises(InfrastructureError, match="does not run"):
        registry.pause()
    assert registry.start().number == 2


def test_nobody_is_given_its_port_while_it_is_down(registry: ProcessRegistry) -> None:
    def taken() -> bool:
        with socket.socket() as other:
            try:
                other.bind(("127.0.0.1", port))
            except OSError:
                return True
        return False

    port = registry.port
    registry.stop()
    assert taken()
    assert registry.start().number == 2
    registry.close()
    wait_until(lambda: not taken(), "the port to be free")


def test_an_end_that_nobody_asked_for_is_seen(registry: ProcessRegistry) -> None:
    assert registry.instance is not None
    pid = registry.instance.pid
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert registry.instance is None
    with pytest.raises(InfrastructureError, match="does not run"):
        registry.wait_ready()
    assert registry.start().number == 2


def test_a_paused_registry_answers_nothing_until_it_goes_on(registry: ProcessRegistry) -> None:
    assert registry.instance is not None
    registry.pause()
    assert state_of(registry.instance.pid) == "T"
    with Wire(registry.endpoint) as wire, pytest.raises(DeadlineError), wire.get("/v2/", deadline=0.1):
        pass
    registry.resume()
    registry.wait_ready()
    registry.resume()


@pytest.mark.parametrize("end", ["stop", "kill", "restart"])
def test_a_paused_registry_can_be_ended(registry: ProcessRegistry, end: str) -> None:
    registry.pause()
    getattr(registry, end)()
    if end == "restart":
        registry.wait_ready()
    else:
        assert registry.instance is None


def test_read_only_refuses_writes_with_405_as_text(registry: ProcessRegistry, raw: RawRegistry) -> None:
    raw.push("a/b", "v1", IMAGE)
    done = registry.read_only(True)
    assert done.after.read_only
    status, headers, body = raw.ask("POST", "/v2/a/b/blobs/uploads/", b"")
    # As captured from 2.8.2: no JSON.
    assert (status, body) == (405, b"Method not allowed\n")
    assert headers["content-type"].startswith("text/plain")
    assert raw.ask("GET", f"/v2/a/b/blobs/{IMAGE.config.digest}")[0] == 200
    assert registry.restart().after.read_only, "a restart alone leaves it as it was"
    registry.read_only(False)
    raw.push("a/b", "v2", IMAGE)


def test_garbage_collection_removes_what_nothing_refers_to(
    registry: ProcessRegistry, raw: RawRegistry
) -> None:
    raw.push("a/b", "v1", IMAGE)
    other = make_image(ImageRecipe(sized_layers(1, 2000)))
    raw.push_blob("a/b", other.layers[0])
    data = Path(registry.storage) / "docker/registry/v2/blobs/sha256"
    kept = {blob.digest[7:] for blob in (*IMAGE.blobs(), IMAGE.manifest)}

    def stored() -> set[str]:
        return {path.parent.name for path in data.glob("*/*/data")}

    assert stored() == kept | {other.layers[0].digest[7:]}
    tried = registry.garbage_collect(around="nothing", dry_run=True)
    assert (tried.exit_code, tried.restarts) == (0, ())
    assert f"blob eligible for deletion: {other.layers[0].digest}" in tried.text
    assert other.layers[0].digest[7:] in stored()
    done = registry.garbage_collect(around="read-only")
    assert done.exit_code == 0
    assert stored() == kept
    assert [each.after.read_only for each in done.restarts] == [True, False]
    assert len(registry.garbage_collect(around="restart").restarts) == 1


def test_garbage_collection_says_when_it_fails(registry: ProcessRegistry) -> None:
    # A store that has never taken anything has no repositories.
    done = registry.garbage_collect(around="nothing")
    assert done.exit_code == 1
    assert "failed to garbage collect" in done.text


def test_logs_are_read_by_mark_and_over_restarts(registry: ProcessRegistry, raw: RawRegistry) -> None:
    mark = registry.log_mark()
    raw.ask("GET", "/v2/a/b/manifests/none")
    found = registry.wait_for_log(
        lambda entry: entry.fields.get("err.code") == "manifest unknown", since=mark
    )
    assert found.level == "error"
    assert found.fields["vars.reference"] == "none"
    assert found.fields["http.request.uri"] == "/v2/a/b/manifests/none"
    assert found.time == pytest.approx(time.time(), abs=60)
    registry.restart()
    assert sum(entry.message.startswith("listening on") for entry in registry.logs()) == 2
    assert sum(entry.message.startswith("listening on") for entry in registry.logs(mark)) == 1
    with pytest.raises(DeadlineError, match="the last is: "):
        registry.wait_for_log(lambda entry: entry.message == "never", deadline=0.01)


@pytest.mark.parametrize("form", ["text", "json", "logstash"])
def test_each_form_of_the_real_log_is_read(tmp_path: Path, program: Path, form: str) -> None:
    settings = RegistrySettings(log_format=form, access_log=True)  # type: ignore[arg-type]
    with ProcessRegistry(tmp_path, settings, program=program) as registry:
        registry.start()
        RawRegistry(registry.endpoint.url).ask("GET", "/v2/x/manifests/y", User_Agent='a "quoted" one')
        registry.stop()
        entries = registry.logs()
    assert not [entry.raw for entry in entries if entry.form == "plain"]
    missing = next(entry for entry in entries if entry.fields.get("err.code") == "manifest unknown")
    assert (missing.level, missing.form) == ("error", "logfmt" if form == "text" else "json")
    assert missing.fields["http.request.useragent"] == 'a "quoted" one'
    assert missing.time == pytest.approx(time.time(), abs=60)
    access = [entry for entry in entries if entry.form == "access"]
    assert ("GET", "/v2/x/manifests/y", "404") in [
        (entry.fields["method"], entry.fields["uri"], entry.fields["status"]) for entry in access
    ]


def test_metrics_count_requests(registry: ProcessRegistry, raw: RawRegistry) -> None:
    raw.ask("GET", "/v2/a/b/manifests/none")
    assert 'registry_http_requests_total{code="404",handler="manifest",method="get"} 1' in registry.metrics()


def test_pushes_are_notified(tmp_path: Path, program: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/events"
        with ProcessRegistry(tmp_path, RegistrySettings(notifications=url), program=program) as registry:
            registry.start()
            RawRegistry(registry.endpoint.url).push_blob("a/b", IMAGE.config)
            listener.settimeout(10)
            connection, _ = listener.accept()
            with connection:
                assert b"POST /events" in connection.recv(65536)


def test_environment_does_not_override_the_configuration(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_STORAGE_MAINTENANCE_READONLY", "{enabled: true}")
    monkeypatch.setenv("REGISTRY_HTTP_ADDR", "127.0.0.1:1")
    with ProcessRegistry(tmp_path, program=program) as registry:
        registry.start()
        RawRegistry(registry.endpoint.url).push("a/b", "v1", IMAGE)


def test_drain_lets_a_running_upload_end(tmp_path: Path, program: Path) -> None:
    with ProcessRegistry(tmp_path, RegistrySettings(drain=20), program=program) as registry:
        registry.start()
        raw = RawRegistry(registry.endpoint.url)
        location = raw.begin_upload("a/b")
        content = b"x" * (1 << 20)
        with socket.create_connection(("127.0.0.1", registry.port)) as sender:
            head = f"PATCH {location} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n\r\n"
            sender.sendall(head.encode() + content[: 1 << 19])
            uploads = Path(registry.storage) / "docker/registry/v2/repositories/a/b/_uploads"
            # It is being answered once its content is on the disk.
            while not any(path.stat().st_size for path in uploads.glob("*/data")):
                time.sleep(0.001)
            assert registry.instance is not None
            os.kill(registry.instance.pid, signal.SIGTERM)
            sender.sendall(content[1 << 19 :])
            assert sender.recv(4096).startswith(b"HTTP/1.1 202 ")
        registry.stop()


# -- never another one -----------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_told_with_its_holder(tmp_path: Path, program: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        with ProcessRegistry(tmp_path, RegistrySettings(port=port), program=program) as registry:
            with pytest.raises(InfrastructureError, match=f"{port} .*process {os.getpid()} .*listens there"):
                registry.start()
            assert registry.instance is None


def test_a_chosen_port_that_somebody_takes_first_is_chosen_anew(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        taken = holder.getsockname()[1]
        ports = [taken, taken]
        monkeypatch.setattr(
            "harness.registry.process.free_port", lambda address: ports.pop() if ports else free_port(address)
        )
        with ProcessRegistry(tmp_path, program=program) as registry:
            registry.start()
            assert registry.port != taken


def test_an_answer_from_another_process_does_not_count(registry: ProcessRegistry, tmp_path: Path) -> None:
    # As in the fact sheet: one that survived kept the port and answered from its cache.
    other = ProcessRegistry(
        tmp_path / "other", RegistrySettings(port=registry.port), program=registry._program
    )
    try:
        with pytest.raises(InfrastructureError, match="cannot be used"):
            other.start()
        other._process, other._instance = registry._process, registry._instance
        other._port = free_port()
        with pytest.raises(InfrastructureError, match="is not that of the registry that was started"):
            other.wait_ready()
    finally:
        other._process = None
        other.close()


def test_one_that_ends_at_once_says_why(tmp_path: Path, program: Path) -> None:
    authority = LabAuthority(tmp_path / "tls")
    identity = replace(authority.issue("x"), key=tmp_path / "missing.key")
    with ProcessRegistry(tmp_path / "r", RegistrySettings(tls=identity), program=program) as registry:
        with pytest.raises(InfrastructureError, match=r"ended at once: .*missing\.key: no such file"):
            registry.start()
        assert registry.instance is None


def test_a_program_that_is_none_is_told(tmp_path: Path) -> None:
    with (
        ProcessRegistry(tmp_path, program=tmp_path / "none") as registry,
        pytest.raises(InfrastructureError, match=r"ended at once: .*none"),
    ):
        registry.start()


def test_tls_is_checked_and_another_authority_refused(tmp_path: Path, program: Path) -> None:
    authority, stranger = LabAuthority(tmp_path / "tls"), LabAuthority(tmp_path / "other")
    settings = RegistrySettings(tls=authority.issue("registry"))
    with ProcessRegistry(tmp_path / "r", settings, program=program) as registry:
        registry.start()
        assert registry.endpoint.url.startswith("https://")
        with (
            Wire(Endpoint(registry.endpoint.url, stranger.file)) as wire,
            pytest.raises(InfrastructureError, match="is not trusted"),
            wire.get("/v2/"),
        ):
            pass


def test_loopback_of_ipv6(tmp_path: Path, program: Path) -> None:
    # Docker's engine takes 127.0.0.0/8 for insecure and checks no certificate there; ::1 it checks.
    settings = RegistrySettings(address="::1", tls=LabAuthority(tmp_path / "tls").issue("registry"))
    with ProcessRegistry(tmp_path / "r", settings, program=program) as registry:
        registry.start()
        assert registry.endpoint.url == f"https://[::1]:{registry.port}"


# -- nothing is left behind --------------------------------------------------------------------------------


def test_a_temporary_folder_goes_with_it(program: Path) -> None:
    with ProcessRegistry(program=program) as registry:
        registry.start()
        folder = Path(registry.storage).parent
        assert folder.is_dir()
    assert not folder.exists()
    registry.close()


@pytest.mark.parametrize("paused", [False, True])
def test_it_ends_when_the_harness_is_killed(tmp_path: Path, program: Path, paused: bool) -> None:
    code = f"""
import sys, threading
from pathlib import Path
from harness.registry.process import ProcessRegistry
registry = ProcessRegistry(Path({str(tmp_path)!r}), program=Path({str(program)!r}))
starter = threading.Thread(target=registry.start)
starter.start()
starter.join()
registry.wait_ready()  # it outlives the thread that started it
if {paused}:
    registry.pause()
print(registry.instance.pid, flush=True)
sys.stdin.read()
"""
    harness = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert harness.stdin
    assert harness.stdout
    with harness.stdin, harness.stdout:
        pid = int(harness.stdout.readline())
        assert state_of(pid) == ("T" if paused else state_of(pid))
        descriptor = os.pidfd_open(pid)
        harness.kill()
        harness.wait()
    try:
        # A descriptor of a process can be read from when that has ended.
        import select

        assert select.select([descriptor], [], [], 10)[0]
    finally:
        os.close(descriptor)


def test_a_program_whose_parent_is_gone_already_is_not_started(tmp_path: Path) -> None:
    from harness.registry.children import _TIED

    # As if the harness had been killed between the two: the shell has another parent than it was told.
    done = subprocess.run([*_TIED, "1", "touch", str(tmp_path / "started")], check=False)
    assert done.returncode != 0
    assert not (tmp_path / "started").exists()
