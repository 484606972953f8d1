"""`hil defects`: the table of known defects, by release, and one of them."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from harness.cli.defects import app
from harness.errors import ConfigurationError
from harness.lab.known_defects import KINDS

#: What a detection counts by (design, "Words"); INFRA and BLOCKED never do.
PREDICTIONS = {
    "FAILED", "BREACH", "UNKNOWN",
    "FALSE_SUCCESS", "FALSE_FAILURE", "MISREPORT", "STALE", "CONTRADICTION", "UNKNOWN_AS_VALUE", "LOST",
    "NOT_ATTEMPTED", "UNVERIFIABLE",
}  # fmt: skip


def hil(*words: str) -> str:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_list_as_json_has_all_that_a_defect_states() -> None:
    found = json.loads(hil("list", "-o", "json"))
    assert len(found) >= 60
    assert {"system", "card", "tool", "registry", "client"} <= {defect["kind"] for defect in found}
    assert len({defect["name"] for defect in found}) == len(found)
    for defect in found:
        assert set(defect) == {
            *("name", "kind", "reference", "releases", "claims"),
            *("predicts", "beside", "generation"),
        }
        assert all(defect[key] for key in ("name", "reference", "claims"))
        assert defect["predicts"] in PREDICTIONS


def test_list_of_a_release() -> None:
    assert "labels-lost-at-boot" in hil("list", "--release", "stx-2020-07")
    assert "labels-lost-at-boot" not in hil("list", "--release", "head")
    assert hil("list", "--release", "corrected") == "The release corrected has none.\n"


def test_show_has_reference_and_releases() -> None:
    text = hil("show", "labels-lost-at-boot")
    assert "reference:  LP 1890296, 046f98f93\n" in text
    assert "releases:   stx-2020-07\n" in text


def test_unknown_names_are_told() -> None:
    with pytest.raises(ConfigurationError, match="no known defect") as caught:
        hil("show", "labels-lost-at-bot")
    assert "labels-lost-at-boot" in caught.value.hint
    with pytest.raises(ConfigurationError, match="no known defect 'nosuch'") as caught:
        hil("show", "nosuch")
    assert caught.value.hint == "See all of them: hil defects list"
    with pytest.raises(ConfigurationError, match="stx-9"):
        hil("list", "--release", "stx-9")


def test_the_help_names_every_kind() -> None:
    assert all(kind in " ".join(hil("list", "--help").split()) for kind in KINDS)
