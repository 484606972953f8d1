"""Docker's command line as a client: what it says is reported, and its login is nobody else's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.engine_bench import EngineBench
from support.processes import wait_until

from harness.errors import BlockedError
from harness.registry.clients import docker_cli
from harness.registry.clients.catalogue import open_pull_client, open_push_client
from harness.registry.clients.docker_cli import find_docker, pull_client, push_client
from harness.registry.clients.protocol import PushClient
from harness.registry.images import Image
from harness.registry.truth import TruthState

#: Notes where its configuration is, what it holds and who may read it, and does nothing else.
NOTING = """#!/bin/sh
stat -c '%a %n' "$DOCKER_CONFIG" "$DOCKER_CONFIG/config.json"
cat "$DOCKER_CONFIG/config.json"
env | grep -v "^DOCKER_CONFIG=" | grep DOCKER_
exit 3
"""


@pytest.fixture
def client(bench: EngineBench) -> Iterator[PushClient]:
    made = open_push_client("docker-cli", bench.surroundings)
    yield made
    made.close()


@pytest.fixture
def noting(tmp_path: Path) -> Path:
    program = tmp_path / "docker"
    program.write_text(NOTING)
    program.chmod(0o755)
    return program


def test_a_push_is_done_with_the_digest_of_its_last_line(
    client: PushClient, bench: EngineBench, image: Image
) -> None:
    destination = bench.destination()
    client.prepare(image, destination)
    report = client.push(image, destination, deadline=30.0)
    assert (report.result, report.exit_code, report.error) == ("done", 0, "")
    assert report.digest == bench.digest(destination)
    assert report.text.splitlines()[-1].startswith(f"v1: digest: {report.digest} size: ")
    assert report.command == f"docker --host {bench.engine.url} push {destination.reference}"
    assert bench.truth(image, destination) is TruthState.COMPLETE
    assert client.version.endswith(f", engine {bench.engine.version}")


def test_keys_rotated_between_prepare_and_push_are_told(
    client: PushClient, bench: EngineBench, image: Image
) -> None:
    destination = bench.destination()
    client.prepare(image, destination)
    bench.lab.rotate(["registry"])
    report = client.push(image, destination, deadline=30.0)
    assert (report.result, report.exit_code, report.digest) == ("failed", 1, "")
    assert report.error == "unauthorized: authentication required"
    assert bench.truth(image, destination) is TruthState.ABSENT


def test_a_wrong_password_is_told(client: PushClient, bench: EngineBench, image: Image) -> None:
    destination = bench.destination(password="wrong")
    client.prepare(image, destination)
    report = client.push(image, destination, deadline=30.0)
    assert (report.result, report.error) == ("failed", "unauthorized: authentication required")


def test_a_deadline_ends_the_program_and_the_push(
    client: PushClient, bench: EngineBench, image: Image
) -> None:
    destination = bench.destination()
    client.prepare(image, destination)
    bench.lab.registry.pause()
    mark = bench.engine.log_mark()
    # Long enough for the program to start and to hand the push to the engine.
    report = client.push(image, destination, deadline=4.0)
    bench.lab.registry.resume()
    wait_until(
        lambda: any("context canceled" in entry.message for entry in bench.engine.logs(mark)),
        "the engine to give up",
    )
    assert (report.result, report.exit_code) == ("interrupted", None)
    assert report.text.startswith(f"The push refers to repository [{destination.reference.registry}/a/b]")
    assert bench.truth(image, destination) is TruthState.ABSENT


def test_the_login_is_for_us_alone_and_nothing_of_the_users_is_taken(
    bench: EngineBench, image: Image, noting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    monkeypatch.setenv("DOCKER_CONTEXT", "elsewhere")
    report = push_client(bench.surroundings, noting).push(image, bench.destination())
    folder, file, known = report.text.splitlines()
    assert folder.startswith(f"700 {bench.surroundings.folder}/")
    assert file.startswith("600 ")
    registry = bench.destination().reference.registry
    assert json.loads(known) == {"auths": {registry: {"auth": "c3lzaW52OmxhYi1vbmx5"}}}  # sysinv:lab-only
    assert (report.result, report.exit_code) == ("failed", 3)
    assert "lab-only" not in report.command


def test_a_pull_states_the_digest_and_leaves_nothing(
    client: PushClient, bench: EngineBench, image: Image
) -> None:
    destination = bench.destination()
    client.prepare(image, destination)
    pushed = client.push(image, destination, deadline=30.0)
    puller = open_pull_client("docker-cli-pull", bench.surroundings)
    cached = puller.pull(destination, deadline=30.0)
    client.forget(image, destination)
    report = puller.pull(destination, deadline=30.0)
    assert cached.digest == report.digest == pushed.digest
    assert (cached.basis, report.basis) == ("the engine had the image already", "")
    assert bench.tags() == set()


def test_a_pull_of_what_is_not_there_fails(bench: EngineBench) -> None:
    report = pull_client(bench.surroundings).pull(bench.destination(), deadline=30.0)
    assert (report.result, report.exit_code) == ("failed", 1)
    assert "manifest unknown" in report.error


@pytest.mark.parametrize(
    ("packages", "asked"),
    [
        pytest.param(("docker-cli",), ["docker-cli"], id="Debian 13"),
        pytest.param(("docker.io",), ["docker-cli", "docker.io"], id="Debian 12"),
    ],
)
def test_its_package_is_the_one_that_this_distribution_has(
    packages: tuple[str, ...], asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def provide(program: str, package: str, *, install: bool) -> Path:
        tried.append(package)
        if package not in packages:
            raise BlockedError(f"The package {package} holds no {program}.")
        return Path("/usr/bin") / program

    monkeypatch.setattr(docker_cli, "provide", provide)
    assert find_docker() == Path("/usr/bin/docker")
    assert tried == asked


def test_one_that_no_package_has_is_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    def provide(program: str, package: str, *, install: bool) -> Path:
        raise BlockedError(f"The package {package} holds no {program}.")

    monkeypatch.setattr(docker_cli, "provide", provide)
    with pytest.raises(BlockedError, match=r"docker\.io holds no docker"):
        find_docker()
