"""Damage in the store: which file is chosen, what the registry then says, and that it is brought back."""

import errno
import shutil
from pathlib import Path

import pytest
from support.lab_bench import IMAGE, NEWER, LabBench, held

from harness.errors import BlockedError, InfrastructureError
from harness.faults.registry_actions import registry_action

#: The greatest of the image's digests: config and layers are blobs alike.
LAST = max(blob.digest for blob in IMAGE.blobs())


def files(bench: LabBench) -> dict[str, bytes]:
    root = Path(bench.lab.registry.storage)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


# Fact sheet of the registry, section 5: HEAD at once and after a restart, GET's length at once.
@pytest.mark.parametrize(
    ("name", "head", "restarted", "whole"),
    [
        ("flip-blob", 200, 200, False),
        ("truncate-blob", 200, 200, False),
        ("remove-blob", 200, 404, False),
        ("remove-layer-link", 200, 404, True),
        ("empty-link", 200, 500, True),
    ],
)
def test_damage_to_a_blob_is_seen_as_measured_and_undone(
    bench: LabBench, name: str, head: int, restarted: int, whole: bool
) -> None:
    bench.raw.push("a/b", "v1", IMAGE)
    before = files(bench)
    action = registry_action(name)
    action.check(bench)
    with held() as (gate, _):
        said = action.fire(bench, gate)
    assert LAST in said
    assert said.endswith("while PUT /v2/a/b/manifests/v1 (connection 1) was held")
    changed = {path for path, content in files(bench).items() if before[path] != content}
    changed |= before.keys() - files(bench).keys()
    victim = bench.link(LAST) if "link" in name else bench.data(LAST)
    assert changed == {str(victim.relative_to(bench.lab.registry.storage))}
    path = f"/v2/a/b/blobs/{LAST}"
    assert bench.raw.head(path) == head
    content = next(blob for blob in IMAGE.blobs() if blob.digest == LAST).read()
    assert (_got(bench, path) == content) == whole
    # A client that believes HEADs is told that all is well.
    assert bench.push_what_is_missing() == 201
    bench.registry.restart()
    assert bench.raw.head(path) == restarted
    for _ in range(2):
        action.undo(bench)
    assert files(bench) == before


def _got(bench: LabBench, path: str) -> bytes:
    import http.client

    try:
        return bench.raw.ask("GET", path)[2]
    except http.client.IncompleteRead as error:
        return error.partial


def test_an_emptied_tag_link_loses_an_image_that_was_acknowledged(bench: LabBench) -> None:
    bench.raw.push("a/b", "v0", IMAGE)
    bench.raw.push("a/b", "v1", IMAGE)
    action = registry_action("empty-tag-link")
    with held("/v2/a/b/manifests/v0") as (gate, _):
        assert "emptied the link of the tag v0 in a/b" in action.fire(bench, gate)
    assert bench.tag_link("v0").read_bytes() == b""
    accepted = IMAGE.manifest.media_type
    assert bench.raw.ask("GET", "/v2/a/b/manifests/v0", Accept=accepted)[0] == 500
    assert bench.raw.ask("GET", "/v2/a/b/manifests/v1", Accept=accepted)[0] == 200
    # A push heals it, and the undo leaves that alone.
    assert bench.push_what_is_missing(NEWER, "v0") == 201
    action.undo(bench)
    assert bench.tag_link("v0").read_text() == NEWER.digest


def test_what_was_healed_stays(bench: LabBench) -> None:
    bench.raw.push("a/b", "v1", IMAGE)
    action = registry_action(f"remove-blob:{LAST}")
    action.fire(bench, None)
    bench.registry.restart()
    assert bench.push_what_is_missing() == 201
    healed = bench.data(LAST).stat()
    action.undo(bench)
    assert bench.data(LAST).stat() == healed


def test_what_cannot_be_brought_back_is_told_and_tried_again(
    bench: LabBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.raw.push("a/b", "v1", IMAGE)
    action = registry_action(f"flip-blob:{LAST}")
    before = bench.data(LAST).read_bytes()
    action.fire(bench, None)

    def full(source: Path, target: Path) -> None:
        target.write_bytes(b"begun")
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfile", full)
        with pytest.raises(InfrastructureError, match=r"data cannot be brought back: No space left"):
            action.undo(bench)
    action.undo(bench)
    assert bench.data(LAST).read_bytes() == before


def test_the_victim_is_of_the_push_that_is_held(bench: LabBench) -> None:
    token = bench.lab.tokens.mint("sysinv", ["repository:c:pull,push", "repository:a/b:pull,push"])
    both = bench.raw
    both.headers = {"Authorization": f"Bearer {token}"}
    both.push("a/b", "v1", IMAGE)
    both.push_blob("c", NEWER.config)
    with held("/v2/c/manifests/v1", "c") as (gate, _):
        action = registry_action("remove-layer-link")
        assert f"removed the link to {NEWER.config.digest} in c while" in action.fire(bench, gate)
        action.undo(bench)
    with pytest.raises(InfrastructureError, match=r"not one repository .* it has a/b, c"):
        registry_action("flip-blob").fire(bench, None)


@pytest.mark.parametrize("name", ["flip-blob", "empty-link", "empty-tag-link", f"remove-blob:{LAST}"])
def test_what_is_not_there_cannot_be_damaged(bench: LabBench, name: str) -> None:
    action = registry_action(name)
    action.check(bench)
    with held() as (gate, _), pytest.raises(InfrastructureError) as caught:
        action.fire(bench, gate)
    assert str(bench.lab.registry.storage) in str(caught.value) or LAST in str(caught.value)
    action.undo(bench)
    bench.raw.push_blob("a/b", IMAGE.config)
    bench.data(IMAGE.config.digest).write_bytes(b"")
    with pytest.raises(InfrastructureError, match="nothing in the blob"):
        registry_action("flip-blob").fire(bench, None)


def test_a_store_elsewhere_is_not_damaged(bench: LabBench) -> None:
    class Elsewhere:
        registry = bench.registry

        @property
        def lab(self) -> object:
            raise BlockedError("The registry is not ours.")

    for name in ("flip-blob", "disk-full", "kill-at-open:tag-link", "rotate-keys", "stop:2"):
        with pytest.raises(BlockedError):
            registry_action(name).check(Elsewhere())  # type: ignore[arg-type]
    for name in ("restart", "stop", "pause", "read-only", "collect-garbage"):
        registry_action(name).check(Elsewhere())  # type: ignore[arg-type]


def test_a_registry_without_a_store_on_this_machine(bench: LabBench, tmp_path: Path) -> None:
    from dataclasses import replace

    bench.lab.registry.settings = replace(bench.lab.registry.settings, storage=tmp_path / "none")
    with pytest.raises(BlockedError, match="has no store in"):
        registry_action("flip-blob").check(bench)
