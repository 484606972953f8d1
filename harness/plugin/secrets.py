"""Keeps secrets out of what pytest says: its reports are masked before anybody gets them."""

from __future__ import annotations

import pytest

from harness.record.redaction import redact


def mask_report(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Mask what failed, and what was captured meanwhile."""
    report.sections = [(name, redact(text)) for name, text in report.sections]
    if report.longrepr is None:
        return
    told = report.longreprtext
    masked = redact(told)
    if masked != told:
        report.longrepr = masked
