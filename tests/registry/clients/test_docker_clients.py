"""The SDK's three ways to push: what each reports, and what the registry then holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import docker
import pytest
from support.engine_bench import EngineBench
from support.processes import wait_until

from harness.errors import BlockedError, ConfigurationError, InfrastructureError
from harness.registry.clients.catalogue import Surroundings, open_pull_client, open_push_client
from harness.registry.clients.docker_sdk import naive
from harness.registry.clients.engine_images import image_id
from harness.registry.clients.protocol import Destination, PushClient, Report
from harness.registry.engines.answering import AnsweringEngine
from harness.registry.images import Image, ImageRecipe, IndexRecipe, make_index, sized_layers
from harness.registry.reference import Reference
from harness.registry.tokens import KeyForm, KeyGeneration, KeyRing
from harness.registry.truth import TruthState

NAIVE, STREAM, INSPECT = ALL = ("docker-naive", "docker-stream", "docker-inspect")
#: The second field report's, word for word.
REFUSED = "unauthorized: authentication required"


@contextmanager
def opened(name: str, bench: EngineBench) -> Iterator[PushClient]:
    client = open_push_client(name, bench.surroundings)
    try:
        yield client
    finally:
        client.close()


def pushed(name: str, bench: EngineBench, image: Image, destination: Destination) -> Report:
    with opened(name, bench) as client:
        client.prepare(image, destination)
        return client.push(image, destination, deadline=30.0)


class TestAPush:
    @pytest.mark.parametrize("name", ALL)
    def test_is_done_and_there(self, name: str, bench: EngineBench, image: Image) -> None:
        destination = bench.destination()
        report = pushed(name, bench, image, destination)
        assert report.result == "done"
        assert bench.truth(image, destination) is TruthState.COMPLETE
        # The naive one asks nothing, so it has no digest to state.
        assert report.digest == ("" if name == NAIVE else bench.digest(destination))
        assert report.digest != image.digest

    def test_says_what_it_was_done_by(self, bench: EngineBench) -> None:
        with opened(NAIVE, bench) as client:
            assert client.version == f"docker {docker.__version__}, engine {bench.engine.version}"

    def test_needs_an_engine(self, tmp_path: Path) -> None:
        with pytest.raises(BlockedError, match="docker-naive goes through a Docker engine"):
            open_push_client(NAIVE, Surroundings(tmp_path))

    def test_of_an_index_is_refused(self, bench: EngineBench) -> None:
        index = make_index(IndexRecipe((ImageRecipe(sized_layers(1, 100)),)))
        with opened(STREAM, bench) as client, pytest.raises(ConfigurationError, match="An index cannot"):
            client.prepare(index, bench.destination())

    def test_to_a_digest_is_refused(self, bench: EngineBench, image: Image) -> None:
        there = bench.destination()
        destination = Destination(there.reference.at(image.digest), there.ca_file)
        with opened(STREAM, bench) as client, pytest.raises(ConfigurationError, match="it takes a tag"):
            client.prepare(image, destination)


class TestKeysRotated:
    """The registry has the new keys, and tokens are still signed with the old one."""

    @pytest.mark.parametrize("name", ALL)
    def test_between_prepare_and_push(self, name: str, bench: EngineBench, image: Image) -> None:
        destination = bench.destination()
        with opened(name, bench) as client:
            client.prepare(image, destination)
            bench.lab.rotate(["registry"])
            mark = bench.engine.log_mark()
            report = client.push(image, destination, deadline=30.0)
        assert bench.truth(image, destination) is TruthState.ABSENT
        said = [entry.message for entry in bench.engine.logs(mark)]
        assert f"Upload failed: {REFUSED}" in said
        assert f"Attempting next endpoint for push after error: {REFUSED}" in said
        # The engine has told it to whoever reads: the last line of its answer.
        documents = [json.loads(line) for line in report.text.splitlines() if line.startswith("{")]
        failure = {"errorDetail": {"message": REFUSED}, "error": REFUSED}
        assert failure in documents
        if name == NAIVE:
            assert (report.result, report.error) == ("done", "")
        elif name == STREAM:
            assert (report.result, report.error) == ("failed", REFUSED)
        else:
            assert report.result == "failed"
            assert REFUSED in report.error
        assert report.digest == ""

    @pytest.mark.parametrize(("name", "result"), [(NAIVE, "done"), (STREAM, "failed")])
    def test_while_the_engine_waits_for_its_token(
        self, name: str, result: str, bench: EngineBench, image: Image, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        destination = bench.destination()

        def rotate_meanwhile(signed: str, claims: Mapping[str, Any]) -> str:
            bench.lab.rotate(["registry"])
            return signed

        on_first_token(monkeypatch, rotate_meanwhile)
        report = pushed(name, bench, image, destination)
        assert len(bench.lab.registry.restarts) == 1
        assert report.result == result
        assert REFUSED in report.text
        assert bench.truth(image, destination) is TruthState.ABSENT

    def test_an_older_image_under_the_tag_deceives_the_inspection(
        self,
        bench: EngineBench,
        image: Image,
        newer: Image,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        destination = bench.destination()
        assert pushed(STREAM, bench, image, destination).result == "done"
        older = bench.digest(destination)
        # The token of the push is signed with a key that nobody knows, that of the inspection is good.
        stray = KeyRing(tmp_path / "stray").installed
        on_first_token(monkeypatch, lambda signed, claims: stray.sign(claims))
        report = pushed(INSPECT, bench, newer, destination)
        assert (report.result, report.digest) == ("done", older)
        assert REFUSED in report.text
        assert bench.truth(newer, destination) is TruthState.WRONG


class TestAMistake:
    """What is wrong from the start: the naive client does not see it either."""

    @pytest.mark.parametrize(("name", "result"), [(NAIVE, "done"), (STREAM, "failed"), (INSPECT, "failed")])
    def test_of_the_password(self, name: str, result: str, bench: EngineBench, image: Image) -> None:
        destination = bench.destination(password="wrong")
        report = pushed(name, bench, image, destination)
        assert (report.result, REFUSED in report.text) == (result, True)
        assert bench.truth(image, destination) is TruthState.ABSENT
        # StarlingX's token server is not asked again, nor is this one.
        assert "Retrying in" not in report.text

    @pytest.mark.parametrize(("name", "result"), [(NAIVE, "done"), (STREAM, "failed"), (INSPECT, "failed")])
    def test_of_the_tag(self, name: str, result: str, bench: EngineBench, image: Image) -> None:
        with opened(name, bench) as client:
            report = client.push(image, bench.destination(tag="nowhere"), deadline=30.0)
        assert (report.result, "does not exist" in report.text) == (result, True)

    @pytest.mark.parametrize(("name", "result"), [(NAIVE, "done"), (STREAM, "failed"), (INSPECT, "failed")])
    def test_of_the_registry_being_down(
        self, name: str, result: str, bench: EngineBench, image: Image
    ) -> None:
        bench.lab.registry.kill()
        report = pushed(name, bench, image, bench.destination())
        assert (report.result, "connection refused" in report.text) == (result, True)


class TestTime:
    """The registry is stopped where it stands; the engine waits for its answer."""

    def test_the_sdk_gives_up_by_itself(self, bench: EngineBench, image: Image) -> None:
        client = naive(bench.surroundings, timeout=0.5)
        try:
            client.prepare(image, bench.destination())
            bench.lab.registry.pause()
            report = client.push(image, bench.destination(), deadline=30.0)
        finally:
            client.close()
        assert report.result == "failed"
        assert "Read timed out" in report.error

    @pytest.mark.parametrize("name", ALL)
    def test_a_deadline_interrupts(self, name: str, bench: EngineBench, image: Image) -> None:
        with opened(name, bench) as client:
            client.prepare(image, bench.destination())
            bench.lab.registry.pause()
            mark = bench.engine.log_mark()
            # Long enough for the engine to get it.
            report = client.push(image, bench.destination(), deadline=2.0)
            bench.lab.registry.resume()
            engine_gave_up(bench, mark)
        assert report.result == "interrupted"
        assert 2.0 <= report.seconds < 10.0
        assert bench.truth(image, bench.destination()) is TruthState.ABSENT

    @pytest.mark.parametrize("name", [NAIVE, STREAM])
    def test_a_deadline_interrupts_an_engine_that_goes_on_talking(
        self, name: str, bench: EngineBench, image: Image
    ) -> None:
        """It counts down to its next try, a line a second, for 50 seconds."""
        with opened(name, bench) as client:
            client.prepare(image, bench.destination())
            bench.lab.tokens.stop()
            mark = bench.engine.log_mark()
            report = client.push(image, bench.destination(), deadline=2.5)
            engine_gave_up(bench, mark)
        assert report.result == "interrupted"
        assert 2.5 <= report.seconds < 10.0
        assert bench.truth(image, bench.destination()) is TruthState.ABSENT

    def test_a_stream_that_nobody_reads_ends_the_push(self, bench: EngineBench, image: Image) -> None:
        """Why the stream is read to its end: nothing is raised, and nothing is pushed."""
        destination = bench.destination()
        with opened(STREAM, bench) as client, closing(bench.engine.client()) as sdk:
            client.prepare(image, destination)
            bench.lab.registry.pause()
            mark = bench.engine.log_mark()
            said = sdk.api.push(str(destination.reference), stream=True, auth_config={})
            assert b"The push refers to repository" in next(iter(said))
            del said
            bench.lab.registry.resume()
            engine_gave_up(bench, mark)
        assert bench.truth(image, destination) is TruthState.ABSENT


class TestTheEngine:
    def test_that_does_not_answer_is_a_failure_in_its_words(self, tmp_path: Path, image: Image) -> None:
        gone = AnsweringEngine(f"unix://{tmp_path}/none.sock", "gone")
        client = open_push_client(NAIVE, Surroundings(tmp_path, gone))
        destination = Destination(Reference("registry.local:9001", "a/b", "v1"))
        report = client.push(image, destination, deadline=5.0)
        assert report.result == "failed"
        assert report.text.startswith("docker.errors.DockerException: ")
        with pytest.raises(InfrastructureError, match=r"does not load registry\.local:9001/a/b:v1"):
            client.prepare(image, destination)
        client.close()

    def test_has_only_what_was_there_before(self, bench: EngineBench, image: Image, newer: Image) -> None:
        destination = bench.destination()
        tag = str(destination.reference)
        with opened(NAIVE, bench) as first, opened(STREAM, bench) as second:
            first.prepare(image, destination)
            second.prepare(image, destination)
            second.forget(image, destination)
            assert id_of(bench, tag) == image.config.digest, "it was the first one's"
            second.prepare(newer, destination)
            assert id_of(bench, tag) == newer.config.digest
            second.forget(newer, destination)
            assert id_of(bench, tag) == image.config.digest
            second.forget(newer, destination)
            first.forget(image, destination)
            assert id_of(bench, image.config.digest) == id_of(bench, newer.config.digest) == ""

    def test_loses_an_image_whose_tag_was_taken_by_the_same_client(
        self, bench: EngineBench, image: Image, newer: Image
    ) -> None:
        destination = bench.destination()
        with opened(NAIVE, bench) as client:
            client.prepare(image, destination)
            client.prepare(newer, destination)
            client.forget(image, destination)
            assert id_of(bench, image.config.digest) == ""
            assert id_of(bench, str(destination.reference)) == newer.config.digest
            client.forget(newer, destination)
            assert id_of(bench, newer.config.digest) == ""


class TestAPull:
    def test_states_the_digest_and_leaves_nothing(self, bench: EngineBench, image: Image) -> None:
        destination = bench.destination()
        assert pushed(STREAM, bench, image, destination).result == "done"
        report = pulled(bench, destination)
        assert (report.result, report.digest, report.basis) == ("done", bench.digest(destination), "")
        assert bench.tags() == set()

    def test_says_when_the_engine_had_the_image(self, bench: EngineBench, image: Image) -> None:
        destination = bench.destination()
        with opened(STREAM, bench) as client:
            client.prepare(image, destination)
            client.push(image, destination, deadline=30.0)
            report = pulled(bench, destination)
            assert (report.result, report.basis) == ("done", "the engine had the image already")
            assert id_of(bench, str(destination.reference)) == image.config.digest

    def test_of_what_is_not_there_fails(self, bench: EngineBench) -> None:
        report = pulled(bench, bench.destination())
        assert report.result == "failed"
        assert "manifest unknown" in report.error

    def test_of_a_layer_with_a_flipped_byte_blames_the_image(self, bench: EngineBench, image: Image) -> None:
        """The SDK drops the engine's reason and then looks for an image that is not there."""
        destination = bench.destination()
        assert pushed(STREAM, bench, image, destination).result == "done"
        flip_largest_blob(Path(bench.lab.registry.storage))
        report = pulled(bench, destination)
        assert report.result == "failed"
        assert report.text.startswith("docker.errors.ImageNotFound: ")


def pulled(bench: EngineBench, source: Destination) -> Report:
    return open_pull_client("docker-pull", bench.surroundings).pull(source, deadline=30.0)


def on_first_token(monkeypatch: pytest.MonkeyPatch, change: Callable[[str, Mapping[str, Any]], str]) -> None:
    """Have the first token that is signed changed before anybody gets it; it is made already."""
    original = KeyGeneration.sign
    first = [True]

    def sign(generation: KeyGeneration, claims: Mapping[str, Any], form: KeyForm = "x5c") -> str:
        signed = original(generation, claims, form)
        return change(signed, claims) if first and first.pop() else signed

    monkeypatch.setattr(KeyGeneration, "sign", sign)


def engine_gave_up(bench: EngineBench, mark: str) -> None:
    """Return when the engine has ended a push whose caller is gone."""
    wait_until(
        lambda: any("context canceled" in entry.message for entry in bench.engine.logs(mark)),
        "the engine to give up",
    )


def id_of(bench: EngineBench, name: str) -> str:
    with closing(bench.engine.client()) as sdk:
        return image_id(sdk, name)


def flip_largest_blob(store: Path) -> None:
    blob = max(store.glob("**/blobs/sha256/*/*/data"), key=lambda path: path.stat().st_size)
    content = bytearray(blob.read_bytes())
    content[len(content) // 2] ^= 1
    blob.write_bytes(content)
