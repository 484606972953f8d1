"""Which release and defects emulated systems have: the inventory's, then the marker's, then the options'."""

import pytest

from harness.errors import ConfigurationError
from harness.inventory.load import load_inventory
from harness.lab.releases import Release, released

INVENTORY = """\
version: 1
default_lab: small
labs:
  small:
    controllers:
      central: {role: system-controller, emulated: {release: stx-8, defects: [upload-id-not-checked]}}
      real: {role: system-controller, url: "https://127.0.0.1:5000/v3", credentials: {env: SECRET}}
    hosts:
      one:
        system: central
        emulated: {hostname: controller-0}
        cards: {card0: {address: '0000:b2:00.0', identity: '64:4c:36:00:00:01'}}
"""
SCENARIOS = """
import pytest

@pytest.fixture
def entry(system):
    return system.bench._lab.entry.controllers["central"].emulated

def test_of_the_inventory(entry):
    assert (entry.release, entry.defects) == ("stx-8", ("upload-id-not-checked",))

@pytest.mark.hil_release("corrected", defects=("old-flag-kept",))
def test_of_its_marker(entry):
    assert (entry.release, entry.defects) == ("corrected", ("old-flag-kept",))
    assert entry.corrected_defects == ()
"""
FIELDS = ("release", "defects", "corrected_defects")


@pytest.fixture
def inventory(tmp_path):
    path = tmp_path / "inventory.yaml"
    path.write_text(INVENTORY, encoding="utf-8")
    return load_inventory(path)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Release(), ("stx-8", ("upload-id-not-checked",), ())),
        (Release(defects=("old-flag-kept",)), ("stx-8", ("upload-id-not-checked", "old-flag-kept"), ())),
        (Release(without=("upload-id-not-checked",)), ("stx-8", (), ("upload-id-not-checked",))),
        (Release("stx-6"), ("stx-6", (), ())),
        (Release("stx-6").then(Release(defects=("x",))).then(Release("head")), ("head", (), ())),
    ],
)
def test_the_last_word_holds_and_a_real_system_is_what_it_is(inventory, change, expected) -> None:
    controllers = released(inventory, None, change).lab(None).controllers
    entry = controllers["central"].emulated
    assert tuple(getattr(entry, field) for field in FIELDS) == expected
    assert controllers["real"] == inventory.lab(None).controllers["real"]


@pytest.mark.parametrize(
    ("change", "nearest"),
    [(Release("stx-9"), "'stx-8'"), (Release(without=("old-flags-kept",)), "'old-flag-kept'")],
)
def test_what_there_is_not_is_told_with_the_nearest(inventory, change, nearest) -> None:
    with pytest.raises(ConfigurationError) as told:
        released(inventory, None, change)
    assert nearest in told.value.hint


def test_scenarios_have_the_system_that_they_ask_for(plan) -> None:
    (plan.folder / "inventory.yaml").write_text(INVENTORY, encoding="utf-8")
    assert set(plan.run(SCENARIOS).states.values()) == {"as-stated"}


@pytest.mark.parametrize(
    ("marker", "words", "told"),
    [
        ("'corrected'", ["--hil-defect=old-flag-keeps"], "Did you mean 'old-flag-kept'?"),
        ("'correct'", [], "Did you mean 'corrected'?"),
        ("", [], "names one release"),
        ("'corrected', defects='old-flag-kept'", [], "lists of defects"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(plan, marker, words, told) -> None:
    done = plan.run(
        f"import pytest\n@pytest.mark.hil_release({marker})\ndef test_looks(system): pass", *words
    )
    assert told in done.text
    assert not (done.folder / "reports").exists()


def test_a_scenario_that_has_no_system_has_no_release(plan) -> None:
    done = plan.run("import pytest\n@pytest.mark.hil_release('head')\ndef test_looks(card): pass")
    assert "hil_release is about a system or a cloud" in done.text
