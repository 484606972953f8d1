"""What a log claims, for people and for programs; the same, and nothing of its secrets."""

import json

import pytest
from support import field_reports as reports

from harness.scenarios.field_logs.explaining import explained, explained_text


def test_the_cloud_for_programs(read) -> None:
    document = explained(read(reports.CLOUD))
    assert document["schema"] == "hil-explain/1"
    claims = {each["id"]: each for each in document["claims"]}
    across = next(each for each in document["contradictions"] if each["checker"] == "across")
    row, own = (claims[ident] for ident in across["claims"])
    assert (row["place"], own["place"]) == ({"file": "a.txt", "line": 12}, {"file": "a.txt", "line": 25})
    assert row["said"].startswith("applied True, applied_labels subcloud=abc, subcloud3=3, subcloud4=4")
    assert own["subject"]["name"] == f"subcloud4/image/{reports.ELEVEN}"
    assert [need["checker"] for need in row["needs"]] == ["applied", "across", "stored_images"]
    assert row["needs"][1] | {"read_by": []} == {
        "checker": "across",
        "question": "Does what a system controller says of an image's being applied agree with what its "
        "subclouds say of it?",
        "reporter": "controller-applied",
        "observation": "the images of controller and subcloud in one look, and the card",
        "read_by": [],
        "false_as": "CONTRADICTION",
    }
    assert json.loads(json.dumps(document)) == document


def test_the_cloud_for_people(read) -> None:
    text = explained_text(read(reports.CLOUD))
    assert text.startswith("10 claims in a.txt\n")
    assert (
        f"subcloud4/image/{reports.ELEVEN}\n"
        "    7  system: applied False, bitstream_type functional, bitstream_id 11\n"
        "       a.txt:25\n       if it is false: CONTRADICTION by applied, MISREPORT by stored_images\n"
    ) in text
    assert "dcmanager, as the writer says: firmware_sync_status out-of-sync" in text
    assert "THEY CONTRADICT EACH OTHER (5)" in text
    assert "  across: Does what a system controller says" in text


def test_the_pushes_for_people(read) -> None:
    text = explained_text(read(reports.PUSHES))
    assert "log:sysinv: result done\n       2022-09-21 18:56:25.401 UTC  a.txt:10\n" in text
    assert "no checker judges this" in text
    assert (
        "GET https://registry.local:9001/v2/quay.io/jetstack/cert-manager-acmesolver/manifests/v0.15.0"
        in text
    )
    assert "note: a.txt: 18 times have no zone; taken for UTC" in text


def test_a_log_without_claims(read) -> None:
    assert explained_text(read("nothing\n")) == "0 claims in a.txt\n\nNo claim contradicts another one."
    assert explained(read("nothing\n"))["claims"] == []


@pytest.mark.parametrize("how", ["text", "json"])
def test_secrets_are_masked_and_nothing_steers_the_terminal(read, how: str) -> None:
    log = read(
        '2022-09-21T18:56:25Z c dockerd[9]: level=error msg="Attempting next endpoint for push after error: '
        'Get https://admin:s3cr3tword@registry/v2/: \u202eunauthorized"\n'
    )
    shown = explained_text(log) if how == "text" else json.dumps(explained(log))
    assert "log:dockerd" in shown
    assert "s3cr3tword" not in shown
    assert "\u202e" not in shown
