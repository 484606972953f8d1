"""The remote tool killed from outside amid a flash: told as that, no hang, and the card is free again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.storm import PROJECT

from harness.cards.driver import CardDriver
from harness.cards.results import FlashResult
from harness.hosts.connect import connect
from harness.images.recipes import build, load_recipes
from harness.inventory.load import load_inventory
from harness.judgement.judge import judge
from harness.judgement.records import Promise, ScenarioEnded, ScenarioStarted
from harness.lab.running import RunningLab, start_lab
from harness.record import History, read_history

CARD = "subcloud1/card0"
IMAGE = build(load_recipes((PROJECT / "fixtures/images.yaml").read_text())["unsigned"])


@pytest.fixture(scope="module")
def lab() -> Iterator[RunningLab]:
    with start_lab(load_inventory(PROJECT / "inventory.yaml")) as running:
        yield running


@pytest.mark.parametrize("phase", ["preparing", "transferring", "programming"])
@pytest.mark.parametrize("number", ["9", "15"])
def test_tool_that_is_killed_is_told_and_the_card_is_free_again(
    lab: RunningLab, tmp_path: Path, phase: str, number: str
) -> None:
    bench = lab.bench
    assert bench is not None
    bench.fit(CARD, {})
    host_entry, entry = lab.entry.card(CARD)
    path = tmp_path / "history.jsonl"
    with History(path) as history, closing(connect(host_entry, lab.access(host_entry.name))) as host:
        card = CardDriver(host, entry, history, real=False)
        history.add(ScenarioStarted(scenario="killed"))

        def kill(announced: str) -> None:
            if announced == phase:
                bench.wait_held(CARD, phase)
                _kill_by_hand(lab, number)
                bench.release(CARD)

        bench.hold(CARD, phase)
        done = card.flash(IMAGE, "unsigned", Promise("lands"), at_phase=kill)
        assert isinstance(done, FlashResult)
        assert done.statement.result == "interrupted"
        assert done.seconds < 60
        history.add(ScenarioEnded(scenario="killed"))
        again = card.flash(IMAGE, "unsigned", Promise("lands"))
        assert again.exit_code == 0
        assert host.list("/tmp") == []
    (scenario,) = judge(read_history(path)).scenarios
    assert scenario.verdicts["fpgasupdate"].value != "FALSE_SUCCESS"


def _kill_by_hand(lab: RunningLab, number: str) -> None:
    """Kill the tool over a connection of its own, as a person on the host does."""
    from paramiko import SSHClient

    access = lab.access("subcloud1")
    assert access is not None
    with SSHClient() as client:
        client.load_host_keys(str(access.known_hosts))
        client.connect(access.address, access.port, access.user, key_filename=str(access.key_file))
        _, out, _ = client.exec_command(f"kill -{number} $(pgrep -f '^fpgasupdate') ; echo $?")
        assert out.read() == b"0\n"
