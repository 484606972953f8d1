"""A real engine for each module that pushes through one, and a registry whose certificate it checks."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.engine import private_engine
from support.engine_bench import EngineBench

from harness.registry.assembled import RegistryLab
from harness.registry.clients.catalogue import Surroundings
from harness.registry.configuration import RegistrySettings
from harness.registry.engine import Engine
from harness.registry.images import Image, ImageRecipe, make_image, sized_layers


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with private_engine() as started:
        yield started


@pytest.fixture
def bench(tmp_path: Path, program: Path, engine: Engine) -> Iterator[EngineBench]:
    folder = tmp_path / "clients"
    folder.mkdir()
    with RegistryLab(tmp_path / "lab", RegistrySettings(address="::1"), program=program) as lab:
        made = EngineBench(lab, engine, Surroundings(folder, engine))
        yield made
        assert not made.tags(), "a client has left images in the engine"
        assert not list(folder.iterdir()), "a client has left files"


@pytest.fixture
def image() -> Image:
    return make_image(ImageRecipe(sized_layers(2, 50_000, seed="docker"), label="v1"))


@pytest.fixture
def newer() -> Image:
    """Another image of the same layers."""
    return make_image(ImageRecipe(sized_layers(2, 50_000, seed="docker"), label="v2"))
