"""Keeps secrets out of what pytest says: its reports are masked before anybody gets them."""

from __future__ import annotations

import pytest

from harness.record.redaction import redact


def mask_report(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Mask what failed, and what was captured meanwhile."""
    report.sections = [(name, redact(text)) for name, text in report.sections]
    if isinstance(report, pytest.TestReport):
        report.user_properties = [
            (name, redact(value) if isinstance(value, str) else value)
            for name, value in report.user_properties
        ]
        if hasattr(report, "wasxfail"):
            report.wasxfail = redact(report.wasxfail)
    if report.longrepr is None:
        return
    if isinstance(report.longrepr, tuple):  # of a skip: where, and why
        path, line, why = report.longrepr
        report.longrepr = (path, line, redact(why))
        return
    told = report.longreprtext
    masked = redact(told)
    if masked != told:
        report.longrepr = masked
