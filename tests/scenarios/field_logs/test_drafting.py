"""Drafts of scenarios: what was recovered is in them, what was not is marked, and each passes the check."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from support import field_reports as reports

from harness.errors import ConfigurationError
from harness.images.recipes import load_recipes
from harness.inventory.load import load_inventory
from harness.lab.known_defects import known_releases
from harness.plugin import steps  # noqa: F401 -- it fills the steps
from harness.scenarios.field_logs.draft import OPEN
from harness.scenarios.field_logs.drafting import ABOUT, draft_scenario
from harness.scenarios.field_logs.reading import FieldLog, read_field_logs
from harness.scenarios.field_logs.stand_ins import stand_ins
from harness.scenarios.files import ScenarioFile, load_scenario

PROJECT = Path(__file__).parents[3]
RECIPES = load_recipes((PROJECT / "fixtures/images.yaml").read_text("utf-8"))


@pytest.fixture
def drafted(
    read: Callable[..., FieldLog], tmp_path: Path
) -> Callable[..., tuple[str, dict[str, Any], ScenarioFile]]:
    """Return the text of a draft, what it holds, and the scenario that it is read as."""

    def drafted(*texts: str, **options: Any) -> tuple[str, dict[str, Any], ScenarioFile]:
        text = draft_scenario(read(*texts), **options)
        path = tmp_path / "drafted.scenario.yaml"
        path.write_text(text, encoding="utf-8")
        return text, YAML(typ="safe").load(text), load_scenario(path, list(RECIPES))

    return drafted


def names(data: dict[str, Any]) -> list[str]:
    return [step if isinstance(step, str) else next(iter(step)) for step in data["steps"]]


def test_the_cloud(drafted) -> None:
    _, data, _ = drafted(reports.CLOUD)
    assert data["given"] == {"lab": "emulated", "release": {"name": "stx-2020-07"}}
    assert names(data) == [
        *("card-of-cloud",) * 3,
        *("subcloud",) * 4,
        *("upload", "apply", "audit-cloud", "orchestrate", "audit-cloud"),
        *("subcloud",) * 2,
        *("upload", "apply", "delete-strategy", "audit-cloud", "orchestrate", "audit-cloud"),
    ]
    assert data["steps"][:3] == [
        {"card-of-cloud": "subcloud3/card0", "root": "A"},
        {"card-of-cloud": "subcloud1/card0", "boots_at": "0000:b1:00.0"},
        {"card-of-cloud": "subcloud2/card0", "boots_at": "0000:b1:00.0"},
    ]
    assert data["steps"][3] == {"subcloud": "subcloud1", "do": [{"label": {"subcloud": "abc"}}]}
    first, second = [step for step in data["steps"] if "upload" in step]
    assert (first["upload"], first["fields"]) == (
        "report/11",
        {"filename": reports.SIGNED, "bitstream_id": "11", "name": None},
    )
    assert (second["upload"], second["as"]) == ("report/2", "image2")
    rounds = [step for step in data["steps"] if "orchestrate" in step]
    assert rounds == [
        {"orchestrate": "complete", "subcloud_apply_type": "serial"},
        {"orchestrate": None, "max_parallel": 4},
    ]
    assert data["expect"] == {
        "verdicts": {
            "sysinv-applied": "CONTRADICTION",
            "controller-applied": "CONTRADICTION",
            "dcmanager-sync": "FALSE_SUCCESS",
        }
    }


def test_each_step_cites_where_it_was_read(drafted) -> None:
    lines = drafted(reports.CLOUD)[0].splitlines()
    for number, line in enumerate(lines):
        if line.startswith("  - ") and lines[number - 1].startswith("  #"):
            above = " ".join(lines[max(0, number - 7) : number])
            assert "a.txt:" in above or "audit" in line or OPEN in above, line
    assert "# a.txt:36: system --os-region-name SystemController device-image-apply" in "\n".join(lines)


def test_what_is_not_recovered_is_marked_where_it_stands(drafted) -> None:
    text = " ".join(drafted(reports.CLOUD)[0].replace("#", " ").split())
    for mark in (
        "the image itself (bitstream_id 11); report/11, signed as its file's name says",
        "when the strategy before was deleted",
        "the state in which the strategy ended",
        "which one; root A is assumed",
    ):
        assert f"{OPEN}: {mark}" in text


def test_the_pushes(drafted) -> None:
    text, data, _ = drafted(reports.PUSHES)
    place = "quay.io/jetstack/cert-manager-"
    late = {*(place + name for name in reports.LATE), "quay.io/external_storage/rbd-provisioner"}
    state, download, kept, lost = data["steps"]
    assert state == {"application": "cert-manager", "state": "restore-requested"}
    assert (download["download"], download["tag"], download["meanwhile"]) == (
        "cert-manager", "v0.15.0", ["install-certificate"],
    )  # fmt: skip
    assert set(download["images"]) == {f"{place}acmesolver", *late}
    assert set(download["hold"]) == late
    assert (kept["only"], kept["truth"]) == ([f"{place}acmesolver"], "COMPLETE")
    assert (set(lost["only"]), lost["truth"], lost["verdicts"]["log:sysinv"]) == (
        late,
        "ABSENT",
        "FALSE_SUCCESS",
    )
    assert data["expect"] == {
        "outcome": "FAILED",
        "verdicts": {"sysinv-download": "FALSE_SUCCESS", "log:sysinv": "FALSE_SUCCESS"},
    }
    assert f"{OPEN}: the tag of quay.io/external_storage/rbd-provisioner" in " ".join(text.split())


def test_several_files_make_the_same_draft(drafted) -> None:
    assert drafted(reports.SYSINV, reports.REGISTRY)[1]["steps"] == drafted(reports.PUSHES)[1]["steps"]


def test_a_restart_of_the_registry_alone_changes_no_keys(drafted) -> None:
    kept = [line for line in reports.PUSHES.splitlines() if "token-server" not in line]
    alone = "\n".join(line for line in kept if "certificate install" not in line)
    _, data, _ = drafted(alone)
    (step,) = [step for step in data["steps"] if "download" in step]
    assert step["meanwhile"] == [{"disturb-registry": "restart"}]


def test_a_log_of_the_registry_alone(drafted) -> None:
    text, data, _ = drafted(reports.REGISTRY)
    assert names(data) == ["push"] * 4
    assert data["steps"][0]["action"] == "rotate-keys"
    assert data["expect"] == {"outcome": "FAILED"}
    assert f"{OPEN}: the client" in text


def test_a_card(drafted) -> None:
    _, data, _ = drafted(reports.CARD)
    assert data["given"] == {"card": {"root": "A"}}
    assert data["steps"] == [{"flash": "unsigned", "promise": "unchanged 0x11", "activate": False}, "reset"]
    assert "expect" not in data
    _, data, _ = drafted(reports.CARD_FALSE)
    assert data["expect"] == {"verdicts": {"fpgasupdate": "CONTRADICTION"}}


def test_a_card_whose_update_was_interrupted(drafted) -> None:
    lines = [*reports.CARD.splitlines()[:5], "Interrupted", ""]
    assert drafted("\n".join(lines))[1]["steps"] == [
        {"fault": "sigint", "at": "transferring"},
        {"flash": "unsigned", "promise": "unchanged"},
    ]


def test_a_system(drafted) -> None:
    _, data, _ = drafted(reports.SYSTEM)
    assert data["given"]["system"] == "standard"
    assert names(data) == ["label", "upload", "apply", "update", "lock", "unlock", "look"]


def test_tables_alone_are_brought_about(drafted) -> None:
    text, data, _ = drafted(reports.CLOUD.partition("Detailed Sequence")[0])
    assert names(data).count("upload") == names(data).count("apply") == 2
    assert {"subcloud": "subcloud4", "do": [{"label": {"subcloud4": "4"}}]} in data["steps"]
    assert data["expect"]["verdicts"]["controller-applied"] == "CONTRADICTION"
    assert f"{OPEN}: the commands" in text


def test_an_image_that_is_applied_but_was_never_seen_is_uploaded(drafted) -> None:
    text, data, _ = drafted("$ system device-image-apply 09100124-1111-4222-8333-444455556666 a=b\n")
    assert names(data) == ["upload", "apply", "look"]
    assert f"{OPEN}: when and as what it was uploaded" in text


def test_subclouds_of_other_names_have_stand_ins(drafted) -> None:
    text, data, _ = drafted(
        "edge-7: system host-device-label-assign controller-0 0000:b2:00.0 a=b\n"
        "dcmanager fw-update-strategy create\ndcmanager fw-update-strategy apply\n",
        inventory=load_inventory(PROJECT / "inventory.yaml"),
    )
    assert data["steps"][0] == {"subcloud": "subcloud1", "do": [{"label": {"a": "b"}}]}
    assert f"{OPEN}: edge-7 is no subcloud of the lab; subcloud1 stands for it" in text


def test_releases_are_those_that_are_emulated(drafted) -> None:
    for day, release in (
        ("2019-01-01", "stx-2020-07"), ("2022-06-01", "stx-6"),
        ("2023-06-01", "stx-8"), ("2026-01-01", "head"),
    ):  # fmt: skip
        _, data, _ = drafted(f"It was on {day}.\nsystem host-lock compute-0\n")
        assert data["given"]["release"]["name"] == release
        assert release in known_releases()


def test_stand_ins_are_sound_recipes(drafted) -> None:
    own, known = stand_ins(None), stand_ins(RECIPES)
    assert set(own) <= set(known)
    assert not any(each.name.startswith(("damage/", "tampered", "truncated", "B/")) for each in known)


def test_what_it_is_to_be_about_can_be_said(drafted) -> None:
    both = f"{reports.CLOUD}\n{reports.CARD}"
    text, data, _ = drafted(both)
    assert "orchestrate" in names(data)
    assert "--about cards" in " ".join(text.split())
    assert "flash" in names(drafted(both, about="cards")[1])
    with pytest.raises(ConfigurationError, match="No pushes to draft a scenario of"):
        drafted(both, about="pushes")


def test_nothing_to_draft_is_told(drafted) -> None:
    with pytest.raises(ConfigurationError, match=r"Nothing to draft a scenario of was found in a.txt"):
        drafted("It does not work.\n")


def test_a_value_that_looks_like_a_reference_is_none(drafted) -> None:
    _, data, _ = drafted("system host-device-label-assign compute-0 d k=$x\nsystem host-lock compute-0\n")
    assert data["steps"][0] == {"label": {"k": "$$x"}}


def test_secrets_and_what_steers_a_terminal_are_in_no_draft(drafted) -> None:
    text, _, _ = drafted(
        "system --os-password s3cr3tword device-image-upload \x1b[31m$evil.bin functional 8086 0b30 "
        "--name '#: x\u2028'\n"
    )
    assert "s3cr3tword" not in text
    assert "\x1b" not in text
    assert "\u2028" not in text


_PIECES = [line for text in reports.EVERY.values() for line in text.splitlines()]


@given(st.lists(st.sampled_from(_PIECES), min_size=1, max_size=25), st.sampled_from([None, *ABOUT]))
@settings(max_examples=30, deadline=None)
def test_whatever_is_pasted_in_whatever_order_a_draft_passes_the_check(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], about: Any
) -> None:
    folder = tmp_path_factory.getbasetemp()
    pasted, path = folder / "pasted.txt", folder / "any.scenario.yaml"
    pasted.write_text("\n".join(lines), encoding="utf-8")
    try:
        text = draft_scenario(read_field_logs([str(pasted)]), about=about)
    except ConfigurationError as error:
        assert "to draft a scenario of" in error.message
        return
    path.write_text(text, encoding="utf-8")
    load_scenario(path, list(RECIPES))
