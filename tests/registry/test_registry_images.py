"""Images from recipes: bytes that depend on the recipe alone, and that other programs can unpack."""

import gzip
import hashlib
import io
import json
import tarfile
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ConfigurationError
from harness.registry.images import (
    PIECE,
    Blob,
    Form,
    ImageRecipe,
    IndexRecipe,
    LayerRecipe,
    make_image,
    make_index,
    make_layer,
    sized_layers,
)

PINNED_IMAGE = "sha256:f51511445c0baa3fdd74c668d94bb5383aad9d66c6fd847b0618748e3ba2ee6c"
PINNED_INDEX = "sha256:4ea214dfc996c2d424df0a50868268ec6e7516f6436a6734ed4eed531a70b978"


def sha256(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("form", ["oci", "docker"])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("size", [0, 1, 511, 512, PIECE - 1, PIECE, 3 * PIECE + 7])
def test_layers_are_what_their_digests_say(size: int, packed: bool, form: Form) -> None:
    blob, difference = make_layer(LayerRecipe(size, "seed", packed), form)
    content = blob.read()
    assert (blob.digest, blob.size) == (sha256(content), len(content))
    assert blob.media_type.endswith("gzip") == packed
    plain = gzip.decompress(content) if packed else content
    assert difference == sha256(plain)
    with tarfile.open(fileobj=io.BytesIO(plain)) as opened:
        (member,) = opened.getmembers()
        extracted = opened.extractfile(member)
        assert extracted
        assert (member.size, len(extracted.read())) == (size, size)
    assert b"".join(blob.pieces(len(content) // 3)) == content[len(content) // 3 :]
    assert b"".join(blob.pieces(len(content))) == b""


def test_bytes_of_a_recipe_are_pinned() -> None:
    # Stored campaigns name images by digest: what a recipe gives must not change by an update.
    image = make_image(ImageRecipe((LayerRecipe(1000, "a"), LayerRecipe(5, "b", gzip=False)), "label"))
    assert image.digest == PINNED_IMAGE
    assert make_index(IndexRecipe((ImageRecipe(sized_layers(1, 10)),), "docker")).digest == PINNED_INDEX


def test_layers_do_not_compress_and_differ_by_seed() -> None:
    one, other = (make_layer(LayerRecipe(100_000, seed, gzip=False))[0] for seed in "ab")
    assert one.digest != other.digest
    assert len(gzip.compress(one.read())) > 100_000
    assert make_layer(LayerRecipe(100_000, "a", gzip=False))[0] == one


@pytest.mark.parametrize("form", ["oci", "docker"])
def test_manifest_and_config_name_what_is_there(form: Form) -> None:
    image = make_image(ImageRecipe(sized_layers(3, 100), architecture="arm64", form=form))
    manifest = json.loads(image.manifest.read())
    assert manifest["mediaType"] == image.manifest.media_type
    assert ("oci" in image.manifest.media_type) == (form == "oci")
    assert [layer["digest"] for layer in manifest["layers"]] == [blob.digest for blob in image.layers]
    config = json.loads(image.config.read())
    assert manifest["config"] == {
        "mediaType": image.config.media_type,
        "digest": sha256(image.config.read()),
        "size": image.config.size,
    }
    assert config["architecture"] == "arm64"
    assert config["rootfs"]["diff_ids"] == [sha256(gzip.decompress(blob.read())) for blob in image.layers]
    assert image.manifests() == (image.manifest,)


def test_shared_layers_and_labels() -> None:
    layers = sized_layers(2, 100)
    one, other = (
        make_image(ImageRecipe(layers, "one")),
        make_image(ImageRecipe((*layers, layers[0]), "other")),
    )
    assert one.config.digest != other.config.digest
    assert set(one.layers) == set(other.layers)
    assert [blob.digest for blob in other.blobs()] == [
        *(layer.digest for layer in one.layers),
        other.config.digest,
    ]


@pytest.mark.parametrize("form", ["oci", "docker"])
def test_index_names_its_children_which_come_first(form: Form) -> None:
    recipe = IndexRecipe(
        tuple(ImageRecipe(sized_layers(2, 50), arch, arch, form) for arch in ("amd64", "arm64")), form
    )
    index = make_index(recipe)
    listed = json.loads(index.manifest.read())["manifests"]
    assert [(each["digest"], each["platform"]["architecture"]) for each in listed] == [
        (child.digest, arch) for child, arch in zip(index.children, ("amd64", "arm64"), strict=True)
    ]
    assert [blob.digest for blob in index.manifests()] == [
        *(child.digest for child in index.children),
        index.digest,
    ]
    # The layers are shared; the configs are not.
    assert len(index.blobs()) == 4


def test_sizes_that_cannot_be_are_refused() -> None:
    for size in (-1, 1 << 33):
        with pytest.raises(ConfigurationError, match="cannot be made"):
            make_layer(LayerRecipe(size))


def test_large_layers_take_little_memory() -> None:
    tracemalloc.start()
    try:
        make_layer(LayerRecipe(64 << 20))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@given(st.binary(max_size=100), st.integers(0, 120))
def test_a_blob_in_memory_is_read_from_anywhere(content: bytes, start: int) -> None:
    blob = Blob.of(content, "x/y")
    assert blob.digest == sha256(content)
    assert b"".join(blob.pieces(start)) == content[start:]
    assert blob.descriptor() == {"mediaType": "x/y", "digest": sha256(content), "size": len(content)}
