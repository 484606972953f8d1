"""What a host lacks that a scenario needs: told apart by whether its entry could ever give it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import BlockedError, NotOfferedError
from harness.inventory.load import load_inventory
from harness.inventory.model import Host
from harness.lab.capabilities import require

SWITCHED = "power: {command: {off: pdu off, on: pdu on}}"
#: By name: what stands in the entry of a host.
HOSTS = {
    "emulated": "emulated: {}",
    "unswitched": "emulated: {power: false}",
    "real": "ssh: {address: 10.0.0.1, user: u}",
    "switched": f"ssh: {{address: 10.0.0.1, user: u}}\n        {SWITCHED}",
    "recorded": "emulated: {recording: r.json}",
}
FITS, BLOCKED, NEVER = None, BlockedError, NotOfferedError


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Host]:
    folder = tmp_path_factory.mktemp("capabilities")
    (folder / "r.json").write_text(json.dumps({}))
    entries = "".join(f"      {name}:\n        {said}\n" for name, said in HOSTS.items())
    text = f"version: 1\ndefault_lab: a\nlabs:\n  a:\n    hosts:\n{entries}"
    Path(folder / "inventory.yaml").write_text(text)
    return dict(load_inventory(folder / "inventory.yaml").lab().hosts)


@pytest.mark.parametrize(
    ("host", "power", "bench"),
    [
        ("emulated", FITS, FITS),
        ("unswitched", BLOCKED, FITS),
        ("real", BLOCKED, NEVER),
        ("switched", FITS, NEVER),
        ("recorded", NEVER, NEVER),
    ],
)
def test_what_can_be_given_is_blocked_and_what_never_can_does_not_apply(
    hosts: dict[str, Host], host: str, power: type[Exception] | None, bench: type[Exception] | None
) -> None:
    for capability, kind in (("power", power), ("bench", bench)):
        if kind is None:
            require(hosts[host], [capability])
            continue
        with pytest.raises(BlockedError) as caught:
            require(hosts[host], [capability])
        assert type(caught.value) is kind
        assert bool(caught.value.hint) is (kind is BLOCKED), "a hint only where something helps"


def test_what_can_never_be_is_told_before_what_is_missing(hosts: dict[str, Host]) -> None:
    with pytest.raises(NotOfferedError, match="real is real"):
        require(hosts["real"], ["power", "bench"])


def test_the_hint_names_the_forms_of_power(hosts: dict[str, Host]) -> None:
    from harness.inventory.power import Power

    with pytest.raises(BlockedError) as caught:
        require(hosts["real"], ["power"])
    assert "`power:`" in caught.value.hint
    assert all(form in caught.value.hint for form in set(Power.model_fields) - {"deadline"})
