"""Times of log lines, in every form that the logs have; what is left open is said to be."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.scenarios.field_logs.moments import NO_YEAR, Stamp, stamp_of, told_moment

#: 2022-09-21 18:56:25 UTC, by `date -d`.
AT = 1663786585.0


@pytest.mark.parametrize(
    ("line", "zoned"),
    [
        ("sysinv 2022-09-21 18:56:25.000 129181 INFO sysinv.conductor [-] x", False),
        ("2022-09-21T18:56:25.000 controller-0 registry[1]: info x", False),
        ("2022-09-21T18:56:25Z x", True),
        ("2022-09-21T20:56:25,000+02:00 x", True),
        ("2022-09-21T13:26:25-0530 x", True),
        ("[2022-09-21 18:56:25.00] [INFO    ] x", False),
        ('time="2022-09-21T18:56:25.000000000Z" level=info', True),
    ],
)
def test_forms_with_a_year(line: str, zoned: bool) -> None:
    assert stamp_of(line) == Stamp(AT, zoned, True)


def test_syslog_states_no_year_and_gets_that_of_other_lines() -> None:
    assert stamp_of("Sep 21 18:56:25 controller-0 kernel: x", 2022) == Stamp(AT, False, False)
    assert stamp_of("<6>Feb 29 00:00:00 host x") is not None, "without any year, one with a 29th of February"
    assert stamp_of("Feb 29 00:00:00 host x", 2023) is None


@pytest.mark.parametrize(
    "line",
    [
        "certificate is not valid before the day; it is of no use that it says so: 2022-09-20 21:47:02",
        "[  123.456] kernel",
        "2022-13-01 00:00:00 x",
        "2022-02-30 00:00:00 x",
        "config 2a518e2b-2022-09-21 18:56:25",
        "Foo 21 18:56:25 x",
        "",
    ],
)
def test_no_time_is_made_up(line: str) -> None:
    assert stamp_of(line) is None


def test_a_leap_second_is_no_error() -> None:
    assert stamp_of("2016-12-31T23:59:60Z x") is not None


@given(st.text(max_size=90))
@settings(max_examples=80, deadline=None)
def test_any_text_is_a_time_that_can_be_told_or_none(text: str) -> None:
    found = stamp_of(text, NO_YEAR)
    assert told_moment(found.seconds if found else None) is not None


def test_moments_are_told_in_utc() -> None:
    assert told_moment(AT + 0.371) == "2022-09-21 18:56:25.371"
    assert told_moment(None) == ""
