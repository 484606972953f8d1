"""OCI layouts and Docker archives, ours and in the forms of other writers; and what is wrong with one."""

import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import ConfigurationError, InfrastructureError
from harness.registry.archives import read_image, write_docker_archive, write_layout
from harness.registry.images import (
    Content,
    Image,
    ImageRecipe,
    Index,
    IndexRecipe,
    LayerRecipe,
    make_image,
    make_index,
    sized_layers,
)

IMAGE = make_image(ImageRecipe((LayerRecipe(3000, "a"), LayerRecipe(400_000, "b", gzip=False)), "x"))
INDEX = make_index(
    IndexRecipe((ImageRecipe(sized_layers(2, 50), "1"), ImageRecipe(sized_layers(1, 60), "2")))
)


def hex_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def same(one: Content, other: Content) -> bool:
    def bytes_of(content: Content) -> list[tuple[str, str, bytes]]:
        return [
            (blob.digest, blob.media_type, blob.read()) for blob in (*content.blobs(), *content.manifests())
        ]

    return bytes_of(one) == bytes_of(other)


def packed(folder: Path, path: Path) -> Path:
    with tarfile.open(path, "w") as opened:
        for entry in sorted(folder.rglob("*")):
            opened.add(entry, entry.relative_to(folder), recursive=False)
    return path


@pytest.mark.parametrize("content", [IMAGE, INDEX], ids=["image", "index"])
def test_a_layout_is_read_back_as_folder_and_tar(tmp_path: Path, content: Content) -> None:
    write_layout(content, tmp_path / "layout", "v1")
    assert json.loads((tmp_path / "layout/oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    tar = packed(tmp_path / "layout", tmp_path / "layout.tar")
    for path in (tmp_path / "layout", tar):
        for name in ("", "v1"):
            assert same(read_image(path, name), content)


def test_a_layout_of_several_asks_for_a_name(tmp_path: Path) -> None:
    write_layout(IMAGE, tmp_path, "one")
    first = json.loads((tmp_path / "index.json").read_text())
    write_layout(INDEX, tmp_path, "two")
    second = json.loads((tmp_path / "index.json").read_text())
    first["manifests"] += second["manifests"]
    (tmp_path / "index.json").write_text(json.dumps(first))
    assert same(read_image(tmp_path, "two"), INDEX)
    with pytest.raises(ConfigurationError, match="holds several images") as caught:
        read_image(tmp_path)
    assert caught.value.hint == "It has: one, two."
    with pytest.raises(ConfigurationError, match="has no image 'three'"):
        read_image(tmp_path, "three")


# -- Docker archives -----------------------------------------------------------------------------------------


def test_our_docker_archive_has_the_form_of_docker_save(tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    write_docker_archive(IMAGE, path, ("lab/tool:v1",))
    plain = [gzip.decompress(IMAGE.layers[0].read()), IMAGE.layers[1].read()]
    with tarfile.open(path) as opened:
        contents = {
            member.name: found.read()
            for member in opened
            if (found := opened.extractfile(member)) is not None
        }
    (listed,) = json.loads(contents["manifest.json"])
    assert listed["RepoTags"] == ["lab/tool:v1"]
    assert [contents[name] for name in listed["Layers"]] == plain
    config = json.loads(contents[listed["Config"]])
    assert listed["Config"] == hex_of(contents[listed["Config"]]) + ".json"
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hex_of(layer)}" for layer in plain]
    for name in ("", "lab/tool:v1"):
        image = read_image(path, name)
        assert isinstance(image, Image)
        assert image.config.digest == IMAGE.config.digest
        assert [layer.read() for layer in image.layers] == plain


def save(path: Path, files: dict[str, bytes], links: dict[str, str] | None = None) -> Path:
    with tarfile.open(path, "w") as opened:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            opened.addfile(entry, io.BytesIO(content))
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type = tarfile.SYMTYPE
            entry.linkname = target
            opened.addfile(entry)
    return path


def docker_files(layers: list[bytes], **changes: Any) -> dict[str, bytes]:
    config = {"rootfs": {"diff_ids": [f"sha256:{hex_of(layer)}" for layer in layers]}}
    listed = {
        "Config": "c.json",
        "RepoTags": ["t:1"],
        "Layers": [f"{n}/layer.tar" for n in range(len(layers))],
    }
    return {
        "c.json": json.dumps(config).encode(),
        "manifest.json": json.dumps([listed | changes]).encode(),
        **{f"{n}/layer.tar": layer for n, layer in enumerate(layers)},
    }


def test_links_to_the_same_layer_of_old_archives(tmp_path: Path) -> None:
    files = docker_files([b"one", b"one"])
    del files["1/layer.tar"]
    image = read_image(save(tmp_path / "a.tar", files, {"1/layer.tar": "../0/layer.tar"}))
    assert isinstance(image, Image)
    assert [layer.read() for layer in image.layers] == [b"one", b"one"]


def test_compressed_layers_in_an_archive(tmp_path: Path) -> None:
    files = docker_files([b"one"]) | {"0/layer.tar": gzip.compress(b"one")}
    image = read_image(save(tmp_path / "a.tar", files))
    assert isinstance(image, Image)
    assert image.layers[0].media_type.endswith("gzip")


def test_an_archive_that_is_a_layout_as_well_is_read_as_one(tmp_path: Path) -> None:
    # What `docker save` writes since version 25.
    write_layout(INDEX, tmp_path / "both")
    for name, content in docker_files([b"one"]).items():
        (tmp_path / "both" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "both" / name).write_bytes(content)
    assert same(read_image(packed(tmp_path / "both", tmp_path / "both.tar")), INDEX)


# -- what is wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (docker_files([b"a", b"b"]) | {"1/layer.tar": b"c"}, "layer 2 of 2 (1/layer.tar) is wrong"),
        ({k: v for k, v in docker_files([b"a", b"b"]).items() if k != "1/layer.tar"}, "lacks layer 2 of 2"),
        ({k: v for k, v in docker_files([b"a"]).items() if k != "c.json"}, "lacks c.json"),
        (docker_files([b"a"], Layers=[]), "lists 0 layers, and its config promises 1"),
        (docker_files([b"a"]) | {"manifest.json": b"{"}, "manifest.json in"),
        (docker_files([b"a"]) | {"manifest.json": b'{"a": 1}'}, "is not one of `docker save`"),
        (docker_files([b"a"]) | {"manifest.json": b"[]"}, "holds several images, and none was named"),
        (docker_files([b"a"]) | {"c.json": b"[]"}, "is not one of `docker save`"),
        (docker_files([b"a"]) | {"0/layer.tar": b"\x1f\x8b broken"}, "cannot be unpacked"),
        (
            docker_files([b"a" * 100]) | {"0/layer.tar": gzip.compress(b"a" * 100)[:-12]},
            "ends before its content",
        ),
        ({"readme": b"hi"}, "holds no image"),
    ],
)
def test_a_docker_archive_that_is_wrong_is_told(tmp_path: Path, files: dict[str, bytes], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_image(save(tmp_path / "a.tar", files))
    assert said in caught.value.message


def edit_index(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        index = json.loads((folder / "index.json").read_text())
        change(index)
        (folder / "index.json").write_text(json.dumps(index))

    return damage


def blob_path(folder: Path, digest: str) -> Path:
    return folder / "blobs/sha256" / digest[7:]


def truncate(folder: Path) -> None:
    path = blob_path(folder, IMAGE.layers[1].digest)
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: blob_path(folder, IMAGE.layers[1].digest).unlink(), "lacks layer 2 of 2 (sha256:"),
        (truncate, "layer 2 of 2 is wrong: 401919 bytes"),
        (lambda folder: blob_path(folder, IMAGE.config.digest).unlink(), "lacks its config"),
        (lambda folder: blob_path(folder, IMAGE.digest).write_bytes(b"{}"), "the manifest is wrong"),
        (lambda folder: (folder / "index.json").write_text("nonsense"), "is no JSON"),
        (lambda folder: (folder / "index.json").write_text("[]"), "lists no manifests"),
        (lambda folder: (folder / "oci-layout").unlink(), "holds no image"),
        (edit_index(lambda index: index["manifests"][0].pop("digest")), "something that is no manifest"),
        (
            edit_index(lambda index: index["manifests"][0].update(size="many")),
            "something that is no manifest",
        ),
        (edit_index(lambda index: index["manifests"][0].update(digest="sha256:../../x")), "has no digest"),
        (edit_index(lambda index: index["manifests"][0].update(mediaType="x/y")), "of the type 'x/y'"),
        (edit_index(lambda index: index.update(manifests=[{"annotations": 5}])), "that is no manifest"),
    ],
)
def test_a_layout_that_is_wrong_is_told(tmp_path: Path, damage: Callable[[Path], object], said: str) -> None:
    write_layout(IMAGE, tmp_path)
    damage(tmp_path)
    with pytest.raises(ConfigurationError) as caught:
        read_image(tmp_path)
    assert said in caught.value.message


def test_a_blob_that_is_no_manifest_is_told(tmp_path: Path) -> None:
    from harness.registry.images import Blob

    odd = Image(Blob.of(b'{"layers": [1]}', IMAGE.manifest.media_type), IMAGE.config, ())
    write_layout(odd, tmp_path)
    with pytest.raises(ConfigurationError, match="is no manifest"):
        read_image(tmp_path)


def test_indexes_without_end_are_told(tmp_path: Path) -> None:
    nested: Content = make_image(ImageRecipe(()))
    for _ in range(8):
        from harness.registry.images import Blob, encoded

        whole = encoded({"manifests": [nested.manifest.descriptor()]})
        nested = Index(Blob.of(whole, INDEX.manifest.media_type), (nested,))
    write_layout(nested, tmp_path)
    with pytest.raises(ConfigurationError, match="without end"):
        read_image(tmp_path)


def test_files_that_are_none_of_these(tmp_path: Path) -> None:
    for name, content, hint in (("text", b"hello", ""), ("packed", gzip.compress(b"hello"), "gunzip")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigurationError, match="is no tar file") as caught:
            read_image(tmp_path / name)
        assert hint in caught.value.hint
    with pytest.raises(ConfigurationError, match="cannot be read: No such file") as caught:
        read_image(tmp_path / "missing")
    assert "docker save" in caught.value.hint
    with pytest.raises(ConfigurationError, match="holds no image"):
        read_image(tmp_path)
    with pytest.raises(ConfigurationError, match="cannot be read: embedded null byte"):
        read_image(tmp_path / "a\0b")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match="is a pipe"):
        read_image(tmp_path / "pipe")


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match="cannot be written: "):
        write_layout(IMAGE, tmp_path / "file/x")
    with pytest.raises(InfrastructureError, match="cannot be written: "):
        write_docker_archive(IMAGE, tmp_path / "file/x")


def test_an_image_is_read_where_it_lies(tmp_path: Path) -> None:
    write_layout(IMAGE, tmp_path / "layout")
    image = read_image(tmp_path / "layout")
    shutil.rmtree(tmp_path / "layout/blobs")
    with pytest.raises(FileNotFoundError):
        image.blobs()[0].read()
