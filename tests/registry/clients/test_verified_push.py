"""The reference client in a store that is damaged: it heals, or says what is wrong, and never lies."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.registry.assembled import ACCOUNT, RegistryLab
from harness.registry.clients import verified
from harness.registry.clients.catalogue import PUSH_CLIENTS, Surroundings, open_push_client
from harness.registry.clients.oci_http import once, pull
from harness.registry.clients.oci_session import PushError, Tries
from harness.registry.clients.protocol import Destination, Report
from harness.registry.clients.skopeo import once as skopeo_once
from harness.registry.clients.skopeo_program import find_skopeo
from harness.registry.clients.verified import VerifiedPush
from harness.registry.images import (
    Content,
    ImageRecipe,
    IndexRecipe,
    make_image,
    make_index,
    sized_layers,
)
from harness.registry.reference import Reference
from harness.registry.truth import Expected, TruthState

IMAGE = make_image(ImageRecipe(sized_layers(2, 5000)))
INDEX = make_index(IndexRecipe((ImageRecipe(sized_layers(1, 900)), ImageRecipe(sized_layers(1, 800)))))
LAYER = IMAGE.layers[1].digest[7:]
#: What is damaged does not get better: the tests need not wait for it as a push does.
READING = Tries(most=3, seconds=0.5, first=0.02)


@dataclass
class Bench:
    """A lab, and the client with and without a view of the store."""

    lab: RegistryLab
    where: Destination

    def file(self, *parts: str) -> Path:
        return Path(self.lab.registry.storage, "docker/registry/v2", *parts)

    def data(self, digest: str) -> Path:
        return self.file("blobs/sha256", digest[:2], digest, "data")

    def link(self) -> Path:
        return self.file("repositories/a/b/_layers/sha256", LAYER, "link")

    def push(self, *, store: bool, content: Content = IMAGE) -> Report:
        client = VerifiedPush(Path(self.lab.registry.storage) if store else None, reading=READING)
        client.prepare(content, self.where)
        return client.push(content, self.where, deadline=60)

    def truth(self, content: Content = IMAGE, *, restart: bool = True) -> TruthState:
        return self.lab.probe.image(self.where.reference, Expected(content.digest), restart=restart).state


@pytest.fixture
def bench(lab: RegistryLab) -> Bench:
    registry = lab.endpoint.url.partition("//")[2]
    where = Destination(Reference(registry, "a/b", "v1"), lab.authority.file, ACCOUNT, "lab-only")
    return Bench(lab, where)


@pytest.mark.parametrize("content", [IMAGE, INDEX], ids=["image", "index"])
def test_what_it_says_is_done_is_complete(bench: Bench, content: Content) -> None:
    seen = bench.push(store=True, content=content)
    assert (seen.result, seen.digest, seen.basis) == ("done", content.digest, "by API and store")
    unseen = bench.push(store=False, content=content)
    assert (unseen.result, unseen.digest, unseen.basis) == ("done", content.digest, "by API only")
    assert bench.truth(content) is TruthState.COMPLETE


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:2000])


@pytest.mark.parametrize("store", [True, False], ids=["store seen", "by API only"])
@pytest.mark.parametrize(
    ("damage", "healed", "said"),
    [
        # The registry keeps what it has under a digest, whatever that is, and says 201 to what is sent.
        pytest.param(lambda b: flip(b.data(LAYER)), False, "with the digest", id="flipped"),
        pytest.param(lambda b: halve(b.data(LAYER)), False, "2000", id="truncated"),
        pytest.param(lambda b: b.data(LAYER).unlink(), True, LAYER, id="content removed"),
    ],
)
def test_damage_that_a_push_believes_to_exist(
    bench: Bench, damage: Callable[[Bench], None], healed: bool, said: str, store: bool
) -> None:
    bench.push(store=store)
    damage(bench)
    report = bench.push(store=store)
    if healed:
        assert (report.result, report.digest) == ("done", IMAGE.digest)
        assert report.log[-1].startswith("repaired by a second push: ")
    else:
        assert (report.result, report.digest) == ("failed", "")
        assert report.error.startswith("a second push did not repair: ")
    assert said in report.log[-1]
    assert (bench.truth() is TruthState.COMPLETE) == healed


def test_missing_link_is_seen_in_the_store_alone(bench: Bench) -> None:
    """The API answers from its cache (fact sheet, section 5): who asks it only says so."""
    bench.push(store=True)
    bench.link().unlink()
    unseen = bench.push(store=False)
    assert (unseen.result, unseen.basis) == ("done", "by API only")
    assert bench.truth(restart=False) is TruthState.PARTIAL
    seen = bench.push(store=True)
    assert seen.result == "done"
    assert "its link cannot be read" in seen.log[-1]
    assert seen.log[-1].startswith("repaired by a second push: ")
    assert bench.truth() is TruthState.COMPLETE


def test_manifest_that_a_crash_emptied(bench: Bench, tmp_path: Path) -> None:
    """Every client is told 201 with the digest, and a GET says 500 (fact sheet, section 3)."""
    surroundings = Surroundings(tmp_path / "work")
    once(surroundings).push(IMAGE, bench.where)
    bench.lab.registry.stop()
    bench.data(IMAGE.digest[7:]).write_bytes(b"")
    bench.lab.registry.start()
    skopeo = skopeo_once(surroundings, find_skopeo(install=False))
    skopeo.prepare(IMAGE, bench.where)
    for client in (once(surroundings), skopeo):
        report = client.push(IMAGE, bench.where)
        assert (report.result, report.digest) == ("done", IMAGE.digest), client.name
    skopeo.forget(IMAGE, bench.where)
    assert "500" in pull(surroundings).pull(bench.where).error
    assert bench.truth() in (TruthState.UNREADABLE, TruthState.CORRUPT)
    for store in (False, True):
        report = bench.push(store=store)
        assert (report.result, report.digest) == ("failed", "")
        assert "500" in report.error
    assert f"{IMAGE.digest}: its 0 bytes have the digest" in report.error


def test_tag_that_another_has_taken_meanwhile(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its push and its reading, once: the second push takes the tag back, and it says so."""
    other = make_image(ImageRecipe(sized_layers(1, 700)))
    reads = VerifiedPush._verified
    others = [other]

    def taken(client: VerifiedPush, *given: object) -> object:
        while others:
            once(Surroundings(Path())).push(others.pop(), bench.where)
        return reads(client, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(VerifiedPush, "_verified", taken)
    report = bench.push(store=True)
    assert report.result == "done"
    assert f"under v1 is another manifest, {other.digest}" in report.log[-1]
    assert bench.truth() is TruthState.COMPLETE


UNREADABLE = pytest.mark.parametrize(
    ("happens", "said"),
    [
        (lambda lab: lab.registry.stop(), "Connection refused"),
        (lambda lab: lab.tokens.behave(deny=401), "the token service refuses sysinv: 401"),
        (lambda lab: lab.tokens.behave(deny=503), "the token service refuses sysinv: 503"),
    ],
    ids=["registry gone", "tokens denied", "no token service"],
)


def pushes_and_then(
    bench: Bench, happens: Callable[[RegistryLab], object], store: Path | None = None
) -> Report:
    """Return what the client says where something happens between its push and its reading."""
    client = VerifiedPush(store, tries=Tries(), reading=Tries())
    push = client._pushes.push

    def then(*given: object, **named: object) -> Report:
        report = push(*given, **named)  # type: ignore[arg-type]
        happens(bench.lab)
        return report

    client._pushes.push = then  # type: ignore[method-assign]
    return client.push(IMAGE, bench.where, deadline=20)


@UNREADABLE
def test_of_what_cannot_be_read_back_it_says_that_it_does_not_know(
    bench: Bench, happens: Callable[[RegistryLab], object], said: str
) -> None:
    """What was told 201 is not believed, and nobody has said that it is not there."""
    report = pushes_and_then(bench, happens)
    assert (report.result, report.digest) == ("unknown", "")
    assert report.error.startswith("pushed, and it cannot be read back: ")
    assert said in report.error
    assert report.log[-1] == report.error


def test_what_reads_wrong_in_the_store_has_failed_although_nobody_gives_a_token(bench: Bench) -> None:
    def happens(lab: RegistryLab) -> None:
        lab.tokens.behave(deny=401)
        flip(bench.data(LAYER))

    report = pushes_and_then(bench, happens, Path(bench.lab.registry.storage))
    assert report.result == "failed"
    assert report.error.startswith("a second push did not repair: ")


def test_a_repair_is_held_to_what_reads_then_and_not_to_what_was_answered(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to the second push is lost, and all of it is there."""

    class Unheard(verified.Push):
        def run(self) -> str:
            super().run()
            raise PushError("PUT manifest v1: the connection broke")

    monkeypatch.setattr(verified, "Push", Unheard)
    bench.push(store=True)
    bench.data(LAYER).unlink()
    report = bench.push(store=True)
    assert report.result == "done"
    assert report.log[-1].startswith("repaired by a second push: ")
    assert bench.truth() is TruthState.COMPLETE


def test_clients_without_engine_open_by_their_names(tmp_path: Path) -> None:
    for name in ("oci-once", "oci-renew", "verified-push"):
        assert name in PUSH_CLIENTS
        client = open_push_client(name, Surroundings(tmp_path))
        assert client.name == name
        assert client.version.startswith("httpx ")
        client.close()
