"""Each damage of the fact sheet's table, done to a real store: what a HEAD, the API and the store say."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.raw_push import RawRegistry

from harness.registry.configuration import RegistrySettings
from harness.registry.images import ImageRecipe, IndexRecipe, make_image, make_index, sized_layers
from harness.registry.process import ProcessRegistry
from harness.registry.reference import parse_reference
from harness.registry.store import LocalStore
from harness.registry.truth import Comparison, Expected, ImageTruth, TruthState, compare
from harness.registry.truth_api import ApiTruth
from harness.registry.truth_store import StoreTruth

A, C, P, X, W, U = (
    TruthState.ABSENT,
    TruthState.COMPLETE,
    TruthState.PARTIAL,
    TruthState.CORRUPT,
    TruthState.WRONG,
    TruthState.UNREADABLE,
)
IMAGE = make_image(ImageRecipe(sized_layers(2, 5000)))
OTHER = make_image(ImageRecipe(sized_layers(2, 5000, seed="other")))
LAYER = IMAGE.layers[1]
REFERENCE = parse_reference("registry.local:9001/a/b:v1")
EXPECTED = Expected(IMAGE.digest, IMAGE.config.digest)


@dataclass
class Truths:
    """Both ways of looking at the image in one registry."""

    registry: ProcessRegistry
    raw: RawRegistry

    def api(self) -> ImageTruth:
        with ApiTruth(self.registry.endpoint) as api:
            return api.image(REFERENCE, EXPECTED)

    def store(self) -> ImageTruth:
        return StoreTruth(LocalStore(Path(self.registry.storage))).image(REFERENCE, EXPECTED)

    def both(self) -> Comparison:
        return compare(self.api(), self.store())

    def states(self) -> tuple[TruthState, TruthState]:
        return self.api().state, self.store().state

    def file(self, *parts: str) -> Path:
        return Path(self.registry.storage, "docker/registry/v2", *parts)

    def data(self, digest: str) -> Path:
        return self.file("blobs/sha256", digest[7:9], digest[7:], "data")

    def layer_link(self, digest: str) -> Path:
        return self.file("repositories/a/b/_layers/sha256", digest[7:], "link")

    def tag_link(self) -> Path:
        return self.file("repositories/a/b/_manifests/tags/v1/current/link")

    def revision_link(self) -> Path:
        return self.file("repositories/a/b/_manifests/revisions/sha256", IMAGE.digest[7:], "link")

    def head(self) -> int:
        return self.raw.head(f"/v2/a/b/blobs/{LAYER.digest}")

    def push_what_is_missing(self) -> int:
        """Push as clients do: what a HEAD finds is not sent again. Return the status of the manifest."""
        for blob in IMAGE.blobs():
            if self.raw.head(f"/v2/a/b/blobs/{blob.digest}") != 200:
                self.raw.push_blob("a/b", blob)
        return self.raw.push_manifest("a/b", IMAGE.manifest, "v1")[0]


@pytest.fixture
def truths(registry: ProcessRegistry, raw: RawRegistry) -> Truths:
    raw.push("a/b", "v1", IMAGE)
    made = Truths(registry, raw)
    assert made.states() == (C, C)
    return made


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:2000])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@dataclass(frozen=True)
class Damage:
    """What is done, and what is seen: at once, after a push that believes HEADs, after a restart, healed by
    another such push or not."""

    done: Callable[[Truths], None]
    head: int
    seen: tuple[TruthState, TruthState]
    pushed: tuple[TruthState, TruthState]
    restarted_head: int
    restarted: tuple[TruthState, TruthState]
    healed: tuple[TruthState, TruthState]
    finding: str


DAMAGES = {
    "one bit flipped": Damage(
        lambda t: flip(t.data(LAYER.digest)),
        200,
        (X, X),
        (X, X),
        200,
        (X, X),
        (X, X),
        "with the digest sha256:",
    ),
    "truncated": Damage(
        lambda t: halve(t.data(LAYER.digest)), 200, (X, X), (X, X), 200, (X, X), (X, X), "2000 bytes of"
    ),
    "emptied": Damage(
        lambda t: empty(t.data(LAYER.digest)), 200, (X, X), (X, X), 200, (X, X), (X, X), "0 bytes of"
    ),
    "data removed": Damage(
        lambda t: t.data(LAYER.digest).unlink(),
        200,
        (X, P),  # its cache announces what is not there
        (X, P),
        404,
        (P, P),
        (C, C),
        "its content is missing",
    ),
    # The API overstates for as long as the process lives.
    "layer link removed": Damage(
        lambda t: t.layer_link(LAYER.digest).unlink(),
        200,
        (C, P),
        (C, P),
        404,
        (P, P),
        (C, C),
        "its link in the repository is missing",
    ),
    "layer link emptied": Damage(
        lambda t: empty(t.layer_link(LAYER.digest)),
        200,
        (C, X),
        (C, X),
        500,
        (U, X),
        (C, C),
        "its link in the repository is empty",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_below_the_manifest(truths: Truths, damage: Damage) -> None:
    damage.done(truths)
    assert truths.head() == damage.head
    seen = truths.both()
    assert (seen.truths[0].state, seen.truths[1].state) == damage.seen
    assert seen.agrees == ((damage.seen[0] is C) == (damage.seen[1] is C))
    # What counts is never the milder one.
    assert seen.state is damage.seen[1]
    (finding,) = seen.truths[1].findings
    assert (finding.part, finding.which) == ("layer", LAYER.digest)
    assert damage.finding in finding.reason
    # Every push says 201; what it was worth shows the truth alone.
    assert truths.push_what_is_missing() == 201
    assert truths.states() == damage.pushed
    truths.registry.restart()
    assert truths.head() == damage.restarted_head
    assert truths.states() == damage.restarted
    assert truths.push_what_is_missing() == 201
    assert truths.states() == damage.healed


def test_layer_shorter_than_the_registry_believes_is_told_from_a_broken_connection(truths: Truths) -> None:
    truths.api()  # now the size is in its cache
    halve(truths.data(LAYER.digest))
    (finding,) = truths.api().findings
    assert finding.state is X
    assert finding.reason == f"ends after 2000 of the {LAYER.size} bytes that are announced"


@pytest.mark.parametrize(
    ("done", "seen", "reason"),
    [
        # The crash states of 2.8: what a kill leaves at that instant.
        (lambda t: empty(t.data(IMAGE.digest)), (U, X), "0 bytes with the digest"),
        (lambda t: empty(t.tag_link()), (U, X), "the tag's link is empty"),
        (lambda t: t.tag_link().unlink(), (A, A), "the tag's link is missing"),
        (lambda t: t.revision_link().unlink(), (A, A), "the manifest's link is missing"),
        (lambda t: empty(t.revision_link()), (U, X), "the manifest's link is empty"),
        (lambda t: t.data(IMAGE.digest).unlink(), (A, A), "its content is missing"),
        (lambda t: t.tag_link().write_text("sha256:1234"), (U, X), "the tag's link holds 'sha256:1234'"),
        (lambda t: t.revision_link().write_text(OTHER.digest), (A, X), f"link leads to {OTHER.digest}"),
    ],
    ids=["manifest-emptied", "tag-emptied", "tag-gone", "revision-gone", "revision-emptied", "manifest-gone",
         "tag-nonsense", "revision-elsewhere"],
)  # fmt: skip
def test_damage_to_the_manifest(
    truths: Truths, done: Callable[[Truths], None], seen: tuple[TruthState, TruthState], reason: str
) -> None:
    done(truths)
    truths.registry.restart()
    both = truths.both()
    assert (both.truths[0].state, both.truths[1].state) == seen
    assert reason in both.truths[1].why
    assert both.state is seen[1]


def test_a_manifest_with_a_flipped_bit_is_corrupt_either_way(truths: Truths) -> None:
    path = truths.data(IMAGE.digest)
    # In a digest, so that it is JSON and a manifest still.
    path.write_bytes(path.read_bytes().replace(LAYER.digest.encode(), OTHER.layers[0].digest.encode()))
    truths.registry.restart()
    both = truths.both()
    assert (both.truths[0].state, both.truths[1].state) == (X, X)
    assert f"instead of {IMAGE.digest}" in both.truths[0].why


def test_poison_that_no_client_sees(truths: Truths) -> None:
    # A crash of 2.8 between creating and writing the manifest: every later push says 201, every GET 500.
    empty(truths.data(IMAGE.digest))
    truths.registry.restart()
    assert truths.push_what_is_missing() == 201
    assert truths.raw.ask("GET", "/v2/a/b/manifests/v1")[0] == 500
    assert truths.states() == (U, X)
    assert truths.registry.garbage_collect(around="nothing", dry_run=True).exit_code == 1


def test_deleted_and_collected_online_then_pushed_again(truths: Truths) -> None:
    assert truths.raw.ask("DELETE", f"/v2/a/b/manifests/{IMAGE.digest}")[0] == 202
    assert truths.registry.garbage_collect(around="nothing").exit_code == 0
    assert truths.states() == (A, A)
    assert truths.head() == 200
    # Accepted, and absent: the registry believes its cache.
    assert truths.push_what_is_missing() == 201
    assert truths.both().state in (A, P)
    truths.registry.restart()
    assert truths.head() == 404
    assert truths.push_what_is_missing() == 201
    assert truths.states() == (C, C)


@pytest.mark.parametrize("cache", [True, False])
def test_collected_between_layers_and_manifest(tmp_path: Path, program: Path, cache: bool) -> None:
    with ProcessRegistry(tmp_path, RegistrySettings(cache=cache), program=program) as registry:
        registry.start()
        truths = Truths(registry, RawRegistry(registry.endpoint.url))
        truths.raw.push("a/b", "other", OTHER)
        for blob in IMAGE.blobs():
            truths.raw.push_blob("a/b", blob)
        assert registry.garbage_collect(around="nothing").exit_code == 0
        status, body = truths.raw.push_manifest("a/b", IMAGE.manifest, "v1")
        if not cache:
            assert (status, b"MANIFEST_BLOB_UNKNOWN" in body) == (400, True)
            assert truths.states() == (A, A)
            return
        assert (status, truths.head()) == (201, 200)
        assert truths.states() == (X, P)
        assert len(truths.store().findings) == 3, "two layers and the config"


# -- other content -------------------------------------------------------------------------------------------


def test_other_content_under_the_tag_is_wrong_even_where_it_is_whole(truths: Truths) -> None:
    truths.raw.push("a/b", "v1", OTHER)
    for truth in (truths.api(), truths.store()):
        assert (truth.state, truth.digest, truth.config) == (W, OTHER.digest, OTHER.config.digest)
        assert truth.why == f"tag v1: leads to {OTHER.digest} instead of {IMAGE.digest}"
    # A client that packs layers anew is known by the config.
    with ApiTruth(truths.registry.endpoint) as api:
        assert api.image(REFERENCE, Expected(config=OTHER.config.digest)).state is C
        assert api.image(REFERENCE, Expected(config=IMAGE.config.digest)).state is W
        assert api.image(REFERENCE).state is C
        assert api.image(REFERENCE.at(IMAGE.digest)).state is C, "the old one is there by its digest"


def test_an_index_with_a_child_or_a_child_s_layer_missing(
    registry: ProcessRegistry, raw: RawRegistry
) -> None:
    index = make_index(IndexRecipe(tuple(ImageRecipe(sized_layers(1, 900, seed=s), s) for s in "xy")))
    raw.push("a/b", "v1", index)
    truths = Truths(registry, raw)
    store = StoreTruth(LocalStore(Path(registry.storage)))
    with ApiTruth(registry.endpoint) as api:
        expected = Expected(index.digest)
        assert (api.image(REFERENCE, expected).state, store.image(REFERENCE, expected).state) == (C, C)
        assert api.image(REFERENCE).hashed == sum(blob.size for blob in (*index.blobs(), *index.manifests()))
        layer = index.children[1].blobs()[0]
        truths.data(layer.digest).unlink()
        registry.restart()
        for truth in (api.image(REFERENCE), store.image(REFERENCE)):
            assert [(each.state, each.part, each.which) for each in truth.findings] == [
                (P, "layer", layer.digest)
            ]
        truths.data(index.children[0].digest).unlink()
        for truth in (api.image(REFERENCE), store.image(REFERENCE)):
            assert truth.state is P
            assert [(each.part, each.which) for each in truth.findings] == [
                ("child", index.children[0].digest),
                ("layer", layer.digest),
            ]


def test_all_findings_are_kept_and_the_worst_is_the_state(truths: Truths) -> None:
    truths.data(IMAGE.config.digest).unlink()
    flip(truths.data(LAYER.digest))
    truths.registry.restart()
    for truth in (truths.api(), truths.store()):
        assert truth.state is X
        assert {(each.state, each.part) for each in truth.findings} == {(P, "config"), (X, "layer")}


def test_what_only_root_may_read_is_unreadable_not_absent(
    truths: Truths, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may read everything, so the refusal is the kernel's word in another mouth.
    real = Path.open

    def refuse(path: Path, *args: object, **more: object) -> object:
        if path == truths.data(LAYER.digest):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    truth = truths.store()
    assert (truth.state, truth.why) == (
        U,
        f"layer {LAYER.digest}: its content cannot be read: Permission denied",
    )


# -- catalogue -----------------------------------------------------------------------------------------------


def test_catalogue_and_tags_over_several_pages(registry: ProcessRegistry, raw: RawRegistry) -> None:
    image = make_image(ImageRecipe(()))
    names = sorted(f"{folder}/r{number}" for folder in "ab" for number in range(53))
    for name in names:
        raw.push_blob(name, image.config)
    for tag in ("v2", "v1"):
        raw.push("a/r0", tag, image)
    raw.push("a/r0/deeper/still", "v1", image)
    store = StoreTruth(LocalStore(Path(registry.storage)))
    store.check()
    with ApiTruth(registry.endpoint) as api:
        api.check()
        # The registry answers with 100 at a time.
        assert sorted(api.catalogue()) == sorted([*names, "a/r0/deeper/still"]) == store.catalogue()
        assert api.tags("a/r0") == store.tags("a/r0") == ["v1", "v2"]
        # In the catalogue, and unknown when it is asked for tags.
        assert api.tags("b/r5") == store.tags("b/r5") == []
        assert api.tags("none") == store.tags("none") == []
        assert raw.ask("DELETE", f"/v2/a/r0/manifests/{image.digest}")[0] == 202
        # The registry lists null; the folders of the tags are gone.
        assert api.tags("a/r0") == store.tags("a/r0") == []
