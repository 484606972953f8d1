"""Scenarios that download an application: what is held, what is done meanwhile, and what is missing."""

import pytest
from support.engine import private_engine
from support.plans import INVENTORY

from harness.errors import BlockedError
from harness.judgement.records import Fault, Intent
from harness.registry.process import find_registry


@pytest.fixture
def download_plan(plan, monkeypatch: pytest.MonkeyPatch):
    """A plan over a lab with a registry, whose program is there; tests install nothing."""
    try:
        program = find_registry(install=False)
    except BlockedError as error:
        pytest.fail(f"These tests need a real registry. {error}", pytrace=False)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    inventory = f"{INVENTORY}    registries:\n      registry.local: {{emulated: true}}\n"
    (plan.folder / "inventory.yaml").write_text(inventory, encoding="utf-8")
    return plan


WITHOUT_ENGINE = """
import harness.registry.engines.choose as choose
from harness.errors import BlockedError

def open_engine():
    raise BlockedError("There is no engine here.", hint="Get one.")

choose.open_engine = open_engine
"""

NOT_MEANT = """
def test_holds_what_is_not_downloaded(download):
    download("app", {"a/b": "tiny"}, hold=["a/c"], meanwhile=("nothing", lambda: ""))

def test_does_nothing_meanwhile(download):
    download("app", {"a/b": "tiny"}, hold=["a/b"])

def test_has_no_engine(download):
    download("app", {"a/b": "tiny"})
"""


def test_what_cannot_be_meant_or_done_is_told(download_plan) -> None:
    (download_plan.folder / "conftest.py").write_text(WITHOUT_ENGINE, encoding="utf-8")
    done = download_plan.run(NOT_MEANT)
    assert set(done.states.values()) == {"BLOCKED"}
    assert "BLOCKED (2) To do something while images are downloaded takes those that are held" in done.text
    assert "There is no engine here." in done.text
    assert not [r for r in done.records if isinstance(r, Intent)], "nothing has begun"


HELD = """
import pytest

def test_is_done_while_one_is_held(download, registry):
    def restart():
        manifests = registry.proxy.steps_seen()["manifest-put"]
        return f"{manifests} manifest by then, process {registry.registry.restart().before.pid} ended"

    images = {"first": "tiny", "second": "small"}
    done = download("app", images, hold=["second"], meanwhile=("restart", restart))
    assert [each.report.result for each in done.values()] == ["done", "done"]
    assert registry.proxy.steps_seen()["manifest-put"] == 2

def test_what_is_held_goes_on_where_it_fails(download, registry):
    before = registry.proxy.last
    with pytest.raises(ZeroDivisionError):
        download("app", {"failing": "tiny"}, hold=["failing"], meanwhile=("fail", lambda: 1 / 0), deadline=20)
    assert registry.proxy.steps_seen(before)["manifest-put"] == 1

def test_is_not_done_where_nothing_is_uploaded(download):
    download("app", {"first": "tiny"})
    download("app", {"first": "tiny"}, hold=["first"], meanwhile=("nothing", lambda: 1 / 0))
"""


def test_what_is_done_meanwhile_is_done_between_the_others_and_the_held(download_plan, monkeypatch) -> None:
    with private_engine() as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.url)
        done = download_plan.run(HELD)
    assert done.states == {
        "test_is_done_while_one_is_held": "as-stated",
        "test_what_is_held_goes_on_where_it_fails": "not-as-stated",
        "test_is_not_done_where_nothing_is_uploaded": "not-as-stated",
    }
    fired, not_reached = (r for r in done.records if isinstance(r, Fault))
    assert (fired.point, fired.action, fired.state) == ("before:blob-post#1", "restart", "fired")
    assert fired.subject.name.endswith("/second:v1")
    assert fired.detail.startswith("1 manifest by then, process ")
    assert (not_reached.action, not_reached.state) == ("nothing", "not-reached")
    assert not_reached.detail.endswith("/first:v1 did not come to before:blob-post#1")
