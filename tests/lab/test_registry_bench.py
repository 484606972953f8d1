"""The bench of a registry: clients go through its proxies, its truth is read past them, all of it ends."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.processes import alive

from harness.errors import BlockedError, HarnessError, InfrastructureError, NotOfferedError
from harness.hosts.local import LocalHost
from harness.inventory.load import load_inventory
from harness.inventory.model import Lab
from harness.lab.push_bench import PushBench
from harness.lab.real_registry import RealRegistryBench
from harness.lab.registries import Registries
from harness.lab.registry_bench import RegistryBench
from harness.registry.assembled import PASSWORD, RegistryLab
from harness.registry.images import ImageRecipe, make_image, sized_layers
from harness.registry.ports import free_port
from harness.registry.process import find_registry
from harness.registry.truth import Comparison, TruthState

IMAGE = make_image(ImageRecipe(sized_layers(2, 1000)))


@pytest.fixture(scope="session")
def program() -> Path:
    """Debian's registry: the machine's, or unpacked into the project; tests install nothing."""
    try:
        return find_registry(install=False)
    except BlockedError as error:
        pytest.fail(f"These tests need a real registry. {error}", pytrace=False)


@pytest.fixture
def bench(tmp_path: Path, program: Path) -> Iterator[RegistryBench]:
    with RegistryBench(tmp_path / "bench", program=program) as made:
        yield made


def pushed(bench: PushBench, client: str, repository: str = "a/b") -> Comparison:
    """Push an image and return what is true of it then."""
    destination = bench.destination(repository, "v1", client=client)
    opened = bench.push_client(client)
    opened.prepare(IMAGE, destination)
    report = opened.push(IMAGE, destination)
    opened.forget(IMAGE, destination)
    assert report.result == "done", report.text
    return bench.probe.image(destination.reference, restart=False)


def listens(url: str) -> bool:
    parts = urlsplit(url)
    with socket.socket() as probe:
        probe.settimeout(5)
        return probe.connect_ex((str(parts.hostname), parts.port)) == 0


def test_a_push_goes_through_both_proxies_and_is_read_past_them(bench: RegistryBench) -> None:
    assert pushed(bench, "oci-once").state is TruthState.COMPLETE
    assert bench.proxy.steps_seen()["manifest-put"] == 1
    assert bench.proxy.steps_seen()["manifest-get"] == 0, "the truth is read elsewhere"
    assert bench.token_proxy.steps_seen()["token"] >= 1
    assert bench.lab.tokens.realm != f"{bench.token_proxy.endpoint.url}/token/"


def test_clients_are_told_the_proxy_a_login_and_whom_to_trust(bench: RegistryBench) -> None:
    told = bench.destination("a/b", "v1", client="skopeo")
    assert str(told.reference) == f"localhost:{bench.proxy.port}/a/b:v1"
    assert (told.ca_file, told.user, told.plain) == (bench.lab.authority.file, "sysinv", False)
    assert bench.push_client("oci-once") is bench.push_client("oci-once")


class RecordingEngine:
    """An engine that remembers whom it was made to trust."""

    name = "recording engine"
    trusted: tuple[str, Path]

    def registry_host(self) -> str:
        return "registry.local"

    def trust(self, registry: str, ca_file: Path) -> None:
        self.trusted = (registry, ca_file)


def test_an_engine_is_made_to_check_the_name_by_which_it_pushes(bench: RegistryBench) -> None:
    engine = RecordingEngine()
    bench.use_engine(engine)
    assert engine.trusted == (f"registry.local:{bench.proxy.port}", bench.lab.authority.file)
    through = bench.destination("a/b", "v1", client="docker-naive").reference.registry
    past = bench.destination("a/b", "v1", client="skopeo").reference.registry
    assert (through, past) == (f"registry.local:{bench.proxy.port}", f"localhost:{bench.proxy.port}")


def test_without_encryption_and_tokens_everybody_pushes_but_no_engine(program: Path, tmp_path: Path) -> None:
    with RegistryBench(tmp_path, tls=False, guarded=False, program=program) as plain:
        assert pushed(plain, "oci-once").state is TruthState.COMPLETE
        assert plain.lab.tokens.starts == 1
        assert not plain.token_proxy.steps_seen()
        with pytest.raises(BlockedError, match="plain HTTP"):
            plain.use_engine(RecordingEngine())


def test_nothing_is_left_when_it_is_closed(program: Path) -> None:
    bench = RegistryBench(program=program)
    with bench:
        instance = bench.registry.instance
        assert instance is not None
        urls = [bench.lab.endpoint.url, bench.lab.tokens.realm]
        urls += [bench.proxy.endpoint.url, bench.token_proxy.endpoint.url]
        assert [listens(url) for url in urls] == [True] * 4
        bench.push_client("verified-push")
    bench.close()
    assert not alive(instance.pid)
    assert [listens(url) for url in urls] == [False] * 4
    assert not bench.lab.folder.exists()


def test_what_was_started_ends_where_the_registry_does_not_start(tmp_path: Path) -> None:
    bench = RegistryBench(program=Path("/bin/false"))
    with pytest.raises(InfrastructureError):
        bench.start()
    assert not bench.lab.tokens.runs
    assert not bench.lab.folder.exists()


# -- from an inventory ----------------------------------------------------------------------------------


def lab_of(tmp_path: Path, registries: str) -> Lab:
    path = tmp_path / "inventory.yaml"
    path.write_text(
        "version: 1\ndefault_lab: bench\nlabs:\n  bench:\n    hosts: {here: {local: true}}\n"
        f"    registries:\n      {registries}\n",
        encoding="utf-8",
    )
    return load_inventory(path).lab()


def test_an_entry_is_started_on_first_use_with_its_settings(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    lab = lab_of(tmp_path, "local: {emulated: {tls: false, tokens: false, cache: false}}")
    with Registries(lab, LocalHost, lambda name: tmp_path / name) as registries:
        assert not (tmp_path / "local").exists()
        bench = registries.bench()
        assert registries.bench("local") is bench
        settings = bench.lab.registry.settings
        assert (settings.tls, settings.tokens, settings.cache) == (None, None, False)
        assert bench.registry.instance is not None
        pid = bench.registry.instance.pid
    assert not alive(pid)


def test_what_does_not_start_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[RegistryBench] = []

    def start(bench: RegistryBench) -> None:
        tried.append(bench)
        raise InfrastructureError("No port is free.")

    monkeypatch.setattr(RegistryBench, "start", start)
    lab = lab_of(tmp_path, "local: {emulated: true}")
    with Registries(lab, LocalHost, lambda name: tmp_path / name) as registries:
        for _ in range(2):
            with pytest.raises(InfrastructureError, match="No port is free"):
                registries.bench()
    assert len(tried) == 1


@pytest.fixture
def served(tmp_path: Path, program: Path) -> Iterator[RegistryLab]:
    """A registry that stands for a real one: its keys and its process are none of the bench's business."""
    with RegistryLab(tmp_path / "served", program=program) as made:
        yield made


def entry_of(served: RegistryLab, more: str = "") -> str:
    return (
        f"real: {{url: '{served.endpoint.url}', ca_file: '{served.authority.file}', user: sysinv, "
        f"credentials: {{env: REAL_PASSWORD}}{more}}}"
    )


@pytest.fixture
def reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("REAL_PASSWORD", PASSWORD)

    def bench(entry: str) -> RealRegistryBench:
        registry = lab_of(tmp_path, entry).registry()
        host = LocalHost("here") if registry.host else None
        return RealRegistryBench(registry, host, tmp_path)

    return bench


def test_a_real_registry_is_pushed_to_directly_and_read_by_its_api(served: RegistryLab, reach) -> None:
    with reach(entry_of(served)) as bench:
        truth = pushed(bench, "oci-once")
    assert (truth.state, [each.source for each in truth.truths]) == (TruthState.COMPLETE, ["api"])


def test_a_store_that_is_seen_on_its_host_is_read_too(served: RegistryLab, reach) -> None:
    with reach(entry_of(served, f", host: here, storage: '{served.registry.storage}'")) as bench:
        truth = pushed(bench, "oci-once")
    assert [each.source for each in truth.truths] == ["api", "store"]
    assert {each.state for each in truth.truths} == {TruthState.COMPLETE}


def test_what_a_real_registry_does_not_let_us_do_says_what_would_help_or_does_not_apply(
    served: RegistryLab, reach
) -> None:
    with reach(entry_of(served)) as bench:
        bench.registry.wait_ready()
        for act, hint in {
            bench.registry.restart: "`host` and `service`",
            bench.registry.pause: "`host` and `service`",
            lambda: bench.proxy: "`proxy`",
        }.items():
            with pytest.raises(BlockedError) as caught:
                act()
            assert "real" in caught.value.message
            assert hint in caught.value.hint and type(caught.value) is BlockedError
        for never in (lambda: bench.token_proxy, lambda: bench.lab):
            with pytest.raises(NotOfferedError, match="is a real one"):
                never()


def test_requests_to_a_real_registry_can_be_held_where_its_name_leads_to_us(
    served: RegistryLab, reach
) -> None:
    port = free_port()
    with reach(entry_of(served, f", proxy: 'https://localhost:{port}'")) as bench:
        assert bench.destination("a/b", "v1", client="skopeo").reference.registry == f"localhost:{port}"
        assert pushed(bench, "oci-once").state is TruthState.COMPLETE
        assert bench.proxy.steps_seen()["manifest-put"] == 1


def test_a_missing_password_is_told_before_anything_is_reached(tmp_path: Path) -> None:
    entry = lab_of(
        tmp_path, "real: {url: 'https://nobody.invalid', user: me, credentials: {env: NOT_SET_HERE}}"
    ).registry()
    with pytest.raises(HarnessError, match="NOT_SET_HERE"):
        RealRegistryBench(entry)
