"""The registry of a lab in a container: as asked for, and where Debian's program is not to be had."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.engine import private_engine

import harness.registry.process
from harness.errors import BlockedError
from harness.hosts.local import LocalHost
from harness.inventory.load import load_inventory
from harness.inventory.model import Lab
from harness.lab.push_bench import PushBench
from harness.lab.registries import Registries
from harness.registry.container_image import image_of, import_image
from harness.registry.engines.private import PrivateEngine
from harness.registry.images import ImageRecipe, make_image, sized_layers
from harness.registry.process import find_registry
from harness.registry.truth import Expected, TruthState

IMAGE = make_image(ImageRecipe(sized_layers(2, 1000)))
MISSING = BlockedError("The program docker-registry is missing.", hint="apt install docker-registry")


@pytest.fixture(scope="module")
def engine() -> Iterator[PrivateEngine]:
    with private_engine() as started:
        yield started


@pytest.fixture(scope="module")
def program() -> Path:
    try:
        return find_registry(install=False)
    except BlockedError as error:
        pytest.fail(f"These tests need a real registry. {error}", pytrace=False)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    path = tmp_path / "inventory.yaml"
    path.write_text(
        "version: 1\ndefault_lab: one\n"
        "labs: {one: {registries: {local: {emulated: {service: container}}}}}\n",
        encoding="utf-8",
    )
    return load_inventory(path).lab()


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which Debian's registry can neither be installed nor unpacked."""

    def find() -> Path:
        raise MISSING

    monkeypatch.setattr(harness.registry.process, "find_registry", find)


def pushed(bench: PushBench) -> None:
    """Push over a restart of the container, and see what is there then."""
    destination = bench.destination("a/b", "v1", client="oci-once")
    client = bench.push_client("oci-once")
    client.prepare(IMAGE, destination)
    assert client.push(IMAGE, destination).result == "done"
    client.forget(IMAGE, destination)
    before = bench.registry.instance
    assert before is not None
    assert re.search(r"docker|[0-9a-f]{64}", Path(f"/proc/{before.pid}/cgroup").read_text())
    bench.lab.rotate()
    after = bench.registry.instance
    assert after is not None and after.pid != before.pid
    truth = bench.probe.image(destination.reference, Expected(IMAGE.digest), restart=False)
    assert truth.state is TruthState.COMPLETE


def left(engine: PrivateEngine) -> list[str]:
    with closing(engine.client()) as client:
        return [str(each.id) for each in client.containers.list(all=True, ignore_removed=True)]


def test_it_runs_debians_program_with_tls_and_tokens(
    lab: Lab, engine: PrivateEngine, program: Path, tmp_path: Path
) -> None:
    with Registries(lab, LocalHost, lambda name: tmp_path / name, lambda: engine) as registries:
        pushed(registries.bench())
        assert len(left(engine)) == 1
    assert left(engine) == []


def test_without_the_program_it_is_the_projects_image_that_the_engine_has(
    lab: Lab, engine: PrivateEngine, program: Path, tmp_path: Path, nowhere: None
) -> None:
    with closing(engine.client()) as client:
        import_image(client, program)
        client.images.get(image_of(program)).tag("registry", "2")
        try:
            with Registries(lab, LocalHost, lambda name: tmp_path / name, lambda: engine) as registries:
                pushed(registries.bench())
        finally:
            client.images.remove("registry:2")
            client.images.remove(image_of(program))


def test_without_program_and_image_it_says_what_helps(
    lab: Lab, engine: PrivateEngine, tmp_path: Path, nowhere: None
) -> None:
    said = r"docker-registry is missing\. Nor does the .* have the image registry:2"
    with (
        Registries(lab, LocalHost, lambda name: tmp_path / name, lambda: engine) as registries,
        pytest.raises(BlockedError, match=said) as told,
    ):
        registries.bench()
    assert told.value.hint == f"{MISSING.hint}\nOr:  docker --host {engine.url} pull registry:2"


def test_without_program_and_engine_it_is_blocked_by_the_program(
    lab: Lab, tmp_path: Path, nowhere: None
) -> None:
    with (
        Registries(lab, LocalHost, lambda name: tmp_path / name) as registries,
        pytest.raises(BlockedError) as told,
    ):
        registries.bench()
    assert told.value is MISSING
