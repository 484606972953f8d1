"""What is read of whole reports, and in which order: by time, with what had to be assumed."""

import pytest
from support import field_reports as reports

from harness.scenarios.field_logs.events import CENTRAL, Command, Happened, Told
from harness.scenarios.field_logs.reading import MOST, FieldLog


def told(log: FieldLog) -> list[tuple[int, str, str, dict[str, object]]]:
    return [
        (t.place.line, t.claim.reporter, t.claim.subject.name, dict(t.claim.statement)) for t in log.of(Told)
    ]


def happened(log: FieldLog) -> list[tuple[str, str]]:
    return [(each.what, each.subject) for each in log.of(Happened)]


def test_tables_of_the_cloud_are_of_the_systems_that_prose_names(read) -> None:
    log = read(reports.CLOUD)
    rows = {
        (t.system, t.claim.statement["bitstream_id"]): (
            t.claim.statement["applied"], t.claim.statement["applied_labels"], t.place.line,
        )
        for t in log.of(Told) if "bitstream_type" in t.claim.statement
    }  # fmt: skip
    three = (("subcloud", "abc"), ("subcloud3", "3"), ("subcloud4", "4"))
    assert rows == {
        (CENTRAL, "11"): (True, three, 12),
        (CENTRAL, "2"): (True, three, 13),
        ("subcloud4", "11"): (False, None, 25),
        ("subcloud4", "2"): (True, (("subcloud4", "4"),), 26),
    }


def test_what_the_writer_says_is_hearsay(read) -> None:
    log = read(reports.CLOUD)
    statuses = {
        t.claim.statement["name"]: (t.claim.statement["firmware_sync_status"], t.times)
        for t in log.of(Told)
        if t.hearsay and "name" in t.claim.statement
    }
    assert statuses == {
        "subcloud1": ("in-sync", 2),
        "subcloud2": ("in-sync", 2),
        "subcloud3": ("out-of-sync", 2),
        "subcloud4": ("out-of-sync", 2),
        "all subclouds": ("in-sync", 1),
    }
    assert ("root-key", "subcloud3") in happened(log)
    assert ("bug", "1890296") in happened(log)
    assert [(t.system, t.claim.statement) for t in log.of(Told) if "status" in t.claim.statement] == [
        ("subcloud4", {"status": "completed"})
    ]


@pytest.mark.parametrize(
    ("sentence", "statuses"),
    [
        ("subcloud7 is not in-sync", {"subcloud7": "out-of-sync"}),
        ("subcloud1, 2 and 3 are insync", dict.fromkeys(("subcloud1", "subcloud2", "subcloud3"), "in-sync")),
        (
            "subcloud-east was out of sync, subcloud-west in sync",
            {"subcloud-east": "out-of-sync", "subcloud-west": "in-sync"},
        ),
        ("the status is unknown", {}),
        ("subclouds are in-sync", {}),
    ],
)  # fmt: skip
def test_statuses_in_a_sentence(read, sentence: str, statuses: dict[str, str]) -> None:
    said = [t.claim.statement for t in read(f"{sentence}\n").of(Told)]
    assert {each["name"]: each["firmware_sync_status"] for each in said} == statuses


def test_commands_of_the_cloud_are_of_the_systems_before_them(read) -> None:
    systems = [c.system for c in read(reports.CLOUD).of(Command) if "host-device-label-assign" in c.words]
    assert systems == ["subcloud1", "subcloud2", "subcloud3", "subcloud4", "subcloud1", "subcloud2"]


def test_logs_of_pushes_are_put_in_the_order_of_time(read) -> None:
    log = read(reports.PUSHES)
    assert happened(log)[0] == ("certificate", ""), "it was pasted last, and was first"
    assert [each for each in happened(log) if each[0].startswith("restart")] == [
        ("restart", "docker-distribution"),
        ("restarted", "docker-distribution"),
        ("restart", "registry-token-server"),
    ]
    said = [(reporter, name.rpartition("-")[2]) for _, reporter, name, _ in told(log)]
    assert said.index(("log:registry", "webhook")) < said.index(("log:sysinv", "webhook:v0.15.0"))
    assert any("time goes back by" in note for note in log.notes)
    assert any("times have no zone; taken for UTC" in note for note in log.notes)


def test_several_files_are_merged_by_time(read) -> None:
    one, two = read(reports.PUSHES), read(reports.SYSINV, reports.REGISTRY)
    assert [(r, n, s) for _, r, n, s in told(one)] == [(r, n, s) for _, r, n, s in told(two)]
    assert {t.place.file for t in two.of(Told)} == {"a.txt", "b.txt"}
    assert [t.claim.seq for t in two.of(Told)] == list(range(1, len(two.of(Told)) + 1))


def test_a_clock_that_is_said_to_be_ahead_is_set_back(read) -> None:
    late = reports.REGISTRY.replace("18:56:", "18:57:")
    log = read(reports.SYSINV, late, b=60.0)
    assert [r for _, r, _, _ in told(log)] == [
        r for _, r, _, _ in told(read(reports.SYSINV, reports.REGISTRY))
    ]
    assert any("b.txt: its clock is +60 s ahead" in note for note in log.notes)


def test_clocks_that_seem_to_differ_are_marked(read) -> None:
    registry = "\n".join(line for line in reports.REGISTRY.splitlines() if "registry[" in line)
    engine = "\n".join(line for line in reports.REGISTRY.splitlines() if "dockerd[" in line)
    assert not [note for note in read(registry, engine).notes if "--skew" in note]
    (note,) = [n for n in read(registry, engine.replace("18:56", "19:56")).notes if "--skew" in n]
    assert "--skew b.txt=3600" in note


def test_lines_without_a_year_are_of_the_year_of_the_others(read) -> None:
    kernel = "Sep 21 18:56:24 controller-0 kernel: n3000bmc-secure.1.auto: RSU auth result: 0x00000011\n"
    log = read(f"{reports.SYSINV}{kernel}{reports.REGISTRY}")
    times = [t.time for t in log.of(Told) if t.claim.reporter == "kernel-log"]
    assert times == [1663786584.0]
    assert any("no year" in note for note in log.notes)


def test_an_hour_back_is_told_to_be_the_end_of_summer_time(read) -> None:
    said = "sysinv 2022-10-30 0{}:59:50.000 1 INFO x [-] Docker registry certificate install\n"
    assert any("summer time" in note for note in read(said.format(2) + said.format(1) + said.format(2)).notes)


def test_the_same_claim_is_counted_not_kept_again(read) -> None:
    line = reports.REGISTRY.splitlines()[0]
    (found,) = read(f"{line}\n" * 500).of(Told)
    assert (found.times, found.place.line, found.last and found.last.line) == (500, 1, 500)


def test_what_is_too_much_is_left_out_and_told(read, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST >= 10_000
    monkeypatch.setattr("harness.scenarios.field_logs.reading.MOST", 10)
    log = read("".join(f"system host-lock compute-{n}\n" for n in range(25)))
    assert len(log.events) == 10
    assert any("15 more of Command were left out: 10 are kept" in note for note in log.notes)


def test_tools_of_a_card(read) -> None:
    assert [(r, n, s.get("result", s.get("auth_code"))) for _, r, n, s in told(read(reports.CARD))] == [
        ("fpgasupdate", "0000:b2:00.0", "failed"),
        ("kernel-log", "a card", "0x11"),
        ("rsu", "0000:b2:00.0", "done"),
    ]
    (done,) = [s for _, r, _, s in told(read(reports.CARD_FALSE)) if r == "fpgasupdate"]
    assert done == {"result": "done", "phase": "programming", "error": "", "image": "20ww27.5-unsigned.bin"}


def test_output_that_breaks_off_claims_nothing(read) -> None:
    log = read("\n".join(reports.CARD.splitlines()[:5]))
    assert told(log) == []
    assert [each.what for each in log.of(Happened)] == ["unended"]


def test_a_system_by_itself_with_folded_tables(read) -> None:
    found = {name.partition("/")[2]: s for _, _, name, s in told(read(reports.SYSTEM))}
    assert found[f"state/compute-0/0000:b2:00.0/{reports.IMAGE}"]["status"] == "completed"
    assert found[f"image/{reports.IMAGE}"]["bitstream_id"] == "0x2300"


def test_fpgainfo_and_the_vim(read) -> None:
    log = read(
        "//****** SEC ******//\nPCIe s:b:d.f  : 0000:B2:00.0\nSR root entry hash : hash not programmed\n"
        "SR CSK IDs canceled : 0-2\n\n"
        "Strategy Firmware Update Strategy:\n  state:   build-failed\n  current-phase:  build\n"
    )
    info, vim = [s for *_, s in told(log)]
    assert (info["sr_root"], info["sr_cancelled"]) == ("", [0, 1, 2])
    assert vim["state"] == "build-failed"


def test_secrets_are_in_nothing_that_is_kept(read) -> None:
    log = read(
        "system --os-password s3cr3tword host-lock compute-0\n"
        "2022-09-21T18:56:25.369 c dockerd[9]: level=error "
        'msg="Attempting next endpoint for push after error: Authorization: Bearer abcdefghijkl"\n'
        "subcloud1 is in-sync, password: s3cr3tword\n"
    )
    assert len(log.events) == 3
    assert "s3cr3tword" not in str(log)
    assert "abcdefghijkl" not in str(log)


@pytest.mark.parametrize("text", ["", "\n\n", "nothing of note", "\0\0\0", "|||||\n+--+\n|x", "a\tb\tc"])
def test_what_says_nothing_gives_nothing(read, text: str) -> None:
    assert read(text).events == ()
