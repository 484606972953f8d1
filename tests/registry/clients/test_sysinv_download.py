"""StarlingX's image download: what it logs, what it believes, and what the registry has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from support.engine_bench import EngineBench
from support.processes import wait_until

from harness.registry.clients import sysinv_download
from harness.registry.clients.catalogue import open_push_client
from harness.registry.clients.protocol import Destination, PushClient, Report
from harness.registry.clients.sysinv_download import (
    Form,
    SysinvDownload,
    Wanted,
    push_client,
    starlingx_pause,
)
from harness.registry.images import Image, ImageRecipe, make_image, sized_layers
from harness.registry.truth import TruthState

REFUSED = "unauthorized: authentication required"
#: As the second field report has its lines, up to the message.
PREFIX = re.compile(
    r"sysinv \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \d+ INFO sysinv\.conductor\.kube_app \[-\] (.+)"
)


@pytest.fixture(autouse=True)
def no_crictl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is on this machine: its containerd is not for tests."""
    monkeypatch.setattr(sysinv_download, "installed", lambda program: None)


@contextmanager
def opened(bench: EngineBench, form: Form, **options: object) -> Iterator[PushClient]:
    client = push_client(bench.surroundings, form=form, **options)  # type: ignore[arg-type]
    try:
        yield client
    finally:
        client.close()


@contextmanager
def downloading(bench: EngineBench, crictl: Path | None = None) -> Iterator[SysinvDownload]:
    download = SysinvDownload(bench.engine, bench.surroundings.folder, "current", crictl=crictl)
    try:
        yield download
    finally:
        download.close()


def messages(log: tuple[str, ...]) -> list[str]:
    """The messages, with the seconds left out: they are as they happen to be."""
    found = [PREFIX.fullmatch(line) for line in log]
    assert all(found), log
    return [re.sub(r" in \d+ seconds$", " in N seconds", each[1]) for each in found if each]


def success(local: str, central: str, app: str) -> list[str]:
    """The second field report's four lines."""
    return [
        f"Image {local} is not available in local registry, download started from public/private registry",
        f"Remove image {central} after push to local registry.",
        f"Image {local} download succeeded in N seconds",
        f"All docker images for application {app} were successfully downloaded in N seconds",
    ]


class TestAnImage:
    def test_is_there_and_logged_word_for_word(self, bench: EngineBench, image: Image) -> None:
        destination = bench.destination("quay.io/jetstack/cert-manager-webhook", "v0.15.0")
        client = open_push_client("sysinv-download", bench.surroundings)
        client.prepare(image, destination)
        report = client.push(image, destination, deadline=30.0)
        client.forget(image, destination)
        client.close()
        assert report.result == "done"
        assert messages(report.log) == success(
            str(destination.reference),
            "registry.central:9001/quay.io/jetstack/cert-manager-webhook:v0.15.0",
            "quay.io/jetstack/cert-manager-webhook",
        )
        assert bench.truth(image, destination) is TruthState.COMPLETE
        # It has not looked at what the push returned, and neither crictl nor a pull was part of it.
        assert report.digest == ""
        assert report.basis == (
            "crictl list and pull BLOCKED: no crictl on this machine; source from the engine's cache"
        )

    @pytest.mark.parametrize("form", ["historical", "current"])
    def test_whose_push_is_refused_is_logged_as_a_success(
        self, form: Form, bench: EngineBench, image: Image
    ) -> None:
        destination = bench.destination()
        with opened(bench, form) as client:
            client.prepare(image, destination)
            bench.lab.rotate(["registry"])
            mark = bench.engine.log_mark()
            report = client.push(image, destination, deadline=30.0)
        assert report.result == "done"
        assert messages(report.log) == success(
            str(destination.reference), "registry.central:9001/a/b:v1", "a/b"
        )
        assert bench.truth(image, destination) is TruthState.ABSENT
        assert f"Upload failed: {REFUSED}" in [entry.message for entry in bench.engine.logs(mark)]

    def test_whose_push_is_refused_is_seen_by_the_remedy_and_tried_again(
        self, bench: EngineBench, image: Image
    ) -> None:
        destination = bench.destination()
        bench.lab.rotate(["registry"])
        asked: list[int] = []
        with opened(bench, "remedied", pause=noted(asked, lambda failed: None)) as client:
            client.prepare(image, destination)
            report = client.push(image, destination, deadline=30.0)
        assert asked == [1, 2]
        assert report.result == "failed"
        assert REFUSED in report.error
        started = success(str(destination.reference), "", "")[0]
        assert messages(report.log) == [started] * 3
        assert report.text.count("The push refers to repository") == 3
        assert report.waited == pytest.approx(0.02)
        assert bench.truth(image, destination) is TruthState.ABSENT

    def test_is_there_once_the_token_service_follows(self, bench: EngineBench, image: Image) -> None:
        destination = bench.destination()
        bench.lab.rotate(["registry"])
        pause = noted([], lambda failed: bench.lab.tokens.restart())
        with opened(bench, "remedied", pause=pause) as client:
            client.prepare(image, destination)
            report = client.push(image, destination, deadline=30.0)
        assert (report.result, report.digest) == ("done", bench.digest(destination))
        assert bench.truth(image, destination) is TruthState.COMPLETE

    def test_that_would_be_tried_again_too_late_is_interrupted(
        self, bench: EngineBench, image: Image
    ) -> None:
        bench.lab.rotate(["registry"])
        with opened(bench, "remedied") as client:
            client.prepare(image, bench.destination())
            report = client.push(image, bench.destination(), deadline=30.0)
        assert (report.result, report.waited) == ("interrupted", 0.0)

    def test_of_another_repository_is_pulled_first(self, bench: EngineBench, image: Image) -> None:
        source, destination = bench.destination("mirror/b"), bench.destination("a/b")
        assert streamed(bench, image, source).result == "done"
        with downloading(bench) as download:
            (report,) = download.download("b", [Wanted(destination, source, pulled=True)], deadline=30.0)
        assert report.result == "done"
        assert report.basis.endswith(f"; pulled from {source.reference.registry}")
        assert '"Status: Downloaded newer image' in report.text
        assert bench.truth(image, destination) is TruthState.COMPLETE

    def test_that_cannot_be_pulled_fails(self, bench: EngineBench) -> None:
        wanted = Wanted(bench.destination("a/b"), bench.destination("mirror/b"), pulled=True)
        with downloading(bench) as download:
            (report,) = download.download("b", [wanted], deadline=30.0)
        assert report.result == "interrupted"  # its next try would be too late
        assert "manifest unknown" in report.error
        assert messages(download.log) == success(str(wanted.local.reference), "", "")[:1]


def test_the_pauses_are_starlingx() -> None:
    """Fact sheet of StarlingX, section 7.1: 60 to 75 seconds, then 120 to 135."""
    assert all(60.0 <= starlingx_pause(1) <= 75.0 for _ in range(50))
    assert all(120.0 <= starlingx_pause(2) <= 135.0 for _ in range(50))


class TestAnApplication:
    def test_is_downloaded_five_images_at_a_time(self, bench: EngineBench) -> None:
        images = [make_image(ImageRecipe(sized_layers(1, 2000), label=str(number))) for number in range(6)]
        wanted = [
            Wanted(bench.destination(f"app/{number}"), bench.destination(f"mirror/{number}"), pulled=True)
            for number in range(6)
        ]
        for image, each in zip(images, wanted, strict=True):
            assert streamed(bench, image, each.source).result == "done"
        reports: list[Report] = []
        with downloading(bench) as download:
            bench.lab.registry.pause()
            work = Thread(
                target=lambda: reports.extend(download.download("cert-manager", wanted, deadline=60.0))
            )
            work.start()
            wait_until(lambda: len(download.log) >= 5, "five downloads")
            bench.lab.registry.resume()
            work.join()
        assert [report.result for report in reports] == ["done"] * 6
        said = messages(download.log)
        started = [at for at, message in enumerate(said) if "download started" in message]
        succeeded = [at for at, message in enumerate(said) if "download succeeded" in message]
        assert (started[:5], len(started), len(succeeded)) == ([0, 1, 2, 3, 4], 6, 6)
        assert succeeded[0] < started[5]
        whole = "All docker images for application cert-manager were successfully downloaded in N seconds"
        assert said[-1] == whole
        for image, each in zip(images, wanted, strict=True):
            assert bench.truth(image, each.local) is TruthState.COMPLETE

    def test_of_which_one_image_fails_is_not_said_to_be_whole(self, bench: EngineBench, image: Image) -> None:
        source = bench.destination("mirror/there")
        assert streamed(bench, image, source).result == "done"
        wanted = [
            Wanted(bench.destination("app/there"), source, pulled=True),
            Wanted(bench.destination("app/missing"), bench.destination("mirror/missing"), pulled=True),
        ]
        with downloading(bench) as download:
            reports = download.download("cert-manager", wanted, deadline=30.0)
        assert [report.result for report in reports] == ["done", "interrupted"]
        assert not any(message.startswith("All docker images") for message in messages(download.log))


class TestCrictl:
    """A stand-in answers as crictl does (fact sheet of StarlingX, section 7.1); the real one needs a CRI."""

    def test_that_lists_the_image_is_believed(self, bench: EngineBench, tmp_path: Path) -> None:
        local = bench.destination()
        listed = f'{{"images": [{{"id": "sha256:00", "repoTags": ["{local.reference}"]}}]}}'
        with downloading(bench, crictl(tmp_path, f"echo '{listed}'")) as download:
            (report,) = download.download("b", [Wanted(local, local)], deadline=30.0)
        assert (report.result, report.basis) == ("done", "crictl lists it; the registry was not asked")
        assert messages(download.log)[0] == f"Image {local.reference} exists in the local registry"
        assert bench.lab.probe.image(local.reference, restart=False).state is TruthState.ABSENT

    def test_that_cannot_pull_it_has_it_brought_through_the_engine(
        self, bench: EngineBench, image: Image, tmp_path: Path
    ) -> None:
        local, source = bench.destination(), bench.destination("mirror/b")
        assert streamed(bench, image, source).result == "done"
        said = tmp_path / "said"
        script = f'echo "$@" >> {said}; test "$1" = images && echo "{{}}"'
        with downloading(bench, crictl(tmp_path, script)) as download:
            (report,) = download.download("b", [Wanted(local, source, pulled=True)], deadline=30.0)
        assert report.result == "done"
        assert report.basis.startswith("crictl pull ended with 1; pulled from ")
        assert said.read_text().splitlines() == [
            "images --output=json",
            f"pull --creds sysinv:lab-only {local.reference}",
        ]
        assert bench.truth(image, local) is TruthState.COMPLETE


def noted(asked: list[int], act: Callable[[int], None]) -> Callable[[int], float]:
    """A pause that is short, and something done in it."""

    def pause(failed: int) -> float:
        asked.append(failed)
        act(failed)
        return 0.01

    return pause


def streamed(bench: EngineBench, image: Image, destination: Destination) -> Report:
    client = open_push_client("docker-stream", bench.surroundings)
    try:
        client.prepare(image, destination)
        return client.push(image, destination, deadline=30.0)
    finally:
        client.close()


def crictl(folder: Path, script: str) -> Path:
    program = folder / "crictl"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program
