"""What an inventory may say of a registry, and how an error in that points at its place."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli.inventory import app
from harness.errors import ConfigurationError
from harness.inventory.load import load_inventory
from harness.inventory.registries import Registry

LAB = """\
version: 1
default_lab: bench
labs:
  bench:
    hosts:
      twin:
        emulated:
      controller-0:
        ssh: {address: 10.0.0.7, user: sysadmin}
    registries:
"""
REAL = """\
      registry.local:
        url: https://registry.local:9001
        ca_file: certificates/registry.crt
        user: admin
        credentials: {env: REGISTRY_PASSWORD}
        host: controller-0
        service: {starlingx: docker-distribution, sudo: true}
        storage: /var/lib/docker-distribution/
        proxy: https://registry.central:19001
"""


@pytest.fixture
def written(tmp_path: Path):
    def write(registries: str) -> Path:
        path = tmp_path / "inventory.yaml"
        path.write_text(LAB + registries, encoding="utf-8")
        return path

    return write


def registry(path: Path) -> Registry:
    return load_inventory(path).lab().registry()


def test_an_emulated_registry_needs_no_setting(written) -> None:
    entry = registry(written("      local: {emulated: true}\n"))
    assert entry.emulated is not None
    assert entry.emulated.model_dump() == {
        "service": "process",
        "tls": True,
        "tokens": True,
        "cache": True,
        "delete": True,
        "drain": None,
        "defects": (),
    }


def test_a_real_registry_says_who_keeps_it_and_where_its_store_is(written, tmp_path: Path) -> None:
    entry = registry(written(REAL))
    assert (entry.url, entry.user, entry.host) == ("https://registry.local:9001", "admin", "controller-0")
    assert entry.ca_file == tmp_path / "certificates/registry.crt"
    assert entry.service is not None
    assert (entry.service.starlingx, entry.service.systemd, entry.service.sudo) == (
        "docker-distribution",
        None,
        True,
    )
    assert entry.storage == "/var/lib/docker-distribution"
    assert entry.proxy == "https://registry.central:19001"


@pytest.mark.parametrize(
    ("entry", "line", "said"),
    [
        ("{emulated: {servise: process}}", 11, "emulated.servise: unknown key; did you mean 'service'?"),
        ("{emulated: {service: proces}}", 11, "'proces' is not allowed; did you mean 'process'?"),
        ("{emulated: true, storage: /srv}", 11, "storage: belongs to a real registry"),
        ("{emulated: true, url: 'http://x'}", 11, "exactly one of emulated and url"),
        ("{url: 'http://x', user: me}", 11, "user: needs 'credentials' beside it"),
        ("{url: 'http://x', credentials: {env: P}}", 11, "credentials: needs 'user' beside it"),
        ("{url: 'http://x', user: me, credentials: {agent: true}}", 11, "asks for a password"),
        ("{url: 'http://x', storage: /srv}", 11, "storage: needs 'host'"),
        ("{url: 'http://x', service: {systemd: a.service}}", 11, "service: needs 'host'"),
        ("{url: 'http://x', host: controller-0, service: {}}", 11, "exactly one of systemd"),
        ("{url: 'http://x/v2/'}", 11, "url: is the URL of the service itself, without a path"),
        ("{url: 'http://x?a=b'}", 11, "url: is the URL of the service itself, without a path"),
        ("{url: 'http://a b'}", 11, "url: not a URL"),
        ("{url: 'http://x', proxy: 'http://x/'}", 11, "proxy: is the registry's own URL"),
        ("{url: 'http://x', host: controller0}", 11, "Did you mean 'controller-0'?"),
        ("{url: 'http://x', host: twin}", 11, "'twin' is emulated, and no registry runs on"),
    ],
)
def test_an_error_names_its_place_and_what_is_allowed(written, entry: str, line: int, said: str) -> None:
    path = written(f"      local: {entry}\n")
    with pytest.raises(ConfigurationError) as caught:
        load_inventory(path)
    assert f"{path}:{line}: labs.bench.registries.local" in caught.value.message
    assert said in caught.value.message


def test_a_registry_that_there_is_not_is_told_with_the_nearest(written) -> None:
    lab = load_inventory(written(REAL)).lab()
    with pytest.raises(ConfigurationError, match=r"no registry 'registry\.locl'") as caught:
        lab.registry("registry.locl")
    assert "Did you mean 'registry.local'?" in caught.value.hint


def test_show_says_in_a_line_what_may_be_done_to_each_registry(written) -> None:
    path = written(REAL + "      plain: {emulated: {tls: false, tokens: false}}\n")
    shown = CliRunner().invoke(app, ["show", str(path)])
    assert shown.output.splitlines()[-2:] == [
        "registry registry.local: https://registry.local:9001, as admin, docker-distribution on "
        "controller-0, store /var/lib/docker-distribution, reached by https://registry.central:19001",
        "registry plain: emulated (process), without TLS, without tokens",
    ]


def test_what_is_shown_as_yaml_is_the_same_inventory(written) -> None:
    path = written(REAL + "      local: {emulated: {drain: 5, cache: false}}\n")
    first = load_inventory(path).labs
    path.write_text(CliRunner().invoke(app, ["show", str(path), "-o", "yaml"]).output, encoding="utf-8")
    assert load_inventory(path).labs == first


def test_the_default_lab_has_a_registry_with_certificates_and_tokens() -> None:
    entry = registry(Path(__file__).parents[2] / "inventory.yaml")
    assert entry.name == "registry.local"
    assert entry.emulated is not None
    assert (entry.emulated.service, entry.emulated.tls, entry.emulated.tokens) == ("process", True, True)
