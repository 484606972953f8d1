"""`hil lab status` as text: how each part of a lab is reached stands in one column."""

from __future__ import annotations

from harness.cli.lab import ways_in

WAYS = {"bench1": "ssh ", "system-controller": "controller, ", "registry.local": "registry, "}


def test_the_longest_name_makes_the_column() -> None:
    entry = {
        "hosts": [{"name": "bench1", "ssh": "ssh root@127.0.0.1"}],
        "controllers": [
            {"name": "system-controller", "url": "http://a", "user": "admin", "password_file": "doors.json"}
        ],
        "registries": [{"name": "registry.local", "url": None}],
    }
    lines = list(ways_in(entry))
    assert [line.split()[0] for line in lines] == list(WAYS)
    assert len({line.index(way) for line, way in zip(lines, WAYS.values(), strict=True)}) == 1


def test_a_lab_that_does_not_run_has_none() -> None:
    assert list(ways_in({"hosts": []})) == []
