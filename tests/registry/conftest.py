"""A real registry for each test that wants one; it starts in less than a tenth of a second."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.raw_push import RawRegistry

from harness.errors import BlockedError
from harness.registry.assembled import ACCOUNT, RegistryLab
from harness.registry.process import ProcessRegistry, find_registry


@pytest.fixture(scope="session")
def program() -> Path:
    """Debian's registry: the machine's, or unpacked into the project; tests install nothing."""
    try:
        return find_registry(install=False)
    except BlockedError as error:
        pytest.fail(f"These tests need a real registry. {error}", pytrace=False)


@pytest.fixture
def registry(tmp_path: Path, program: Path) -> Iterator[ProcessRegistry]:
    """A registry on plain HTTP that lets everybody in."""
    with ProcessRegistry(tmp_path / "registry", program=program) as made:
        made.start()
        yield made


@pytest.fixture
def raw(registry: ProcessRegistry) -> RawRegistry:
    """What speaks to it in the tests' own words."""
    return RawRegistry(registry.endpoint.url)


@pytest.fixture
def lab(tmp_path: Path, program: Path) -> Iterator[RegistryLab]:
    """A registry with TLS and a token service."""
    with RegistryLab(tmp_path / "lab", program=program) as made:
        yield made


@pytest.fixture
def pusher(lab: RegistryLab) -> RawRegistry:
    """What speaks to the lab's registry, with a token for the repository `a/b`."""
    token = lab.tokens.mint(ACCOUNT, ["repository:a/b:pull,push"])
    return RawRegistry(lab.endpoint.url, lab.authority.file, token)
