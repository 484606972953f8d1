"""What Allure's results have of a scenario: the evidence of what diverged, and no secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import allure
import pytest
from allure_commons import hookimpl

from harness.plugin.scenario import SCENARIO
from harness.record.redaction import redact

if TYPE_CHECKING:
    from harness.judgement.judge import ScenarioJudgement

_PLAIN = (str, int, float, bool, bytes, type(None))


class AllureEvidence:
    """A plugin of pytest: attaches what diverged, who claimed it, what is true, and the records."""

    @pytest.hookimpl
    def pytest_hil_scenario_judged(self, item: pytest.Item, judgement: ScenarioJudgement) -> None:
        """Attach a text for each divergence, while its scenario is Allure's current test."""
        from harness.report.page.contents import piece_of

        scenario = item.stash[SCENARIO]
        records = {r.seq: r for r in scenario.session.history.records[scenario.first_record - 1 :]}
        for verdict in {str(found): found for found in judgement.divergences}.values():
            pieces = [piece_of(records[seq]) for seq in verdict.records if seq in records]
            raw = "".join(f"\n--- {piece.title}, record {piece.seq}\n{piece.text}\n" for piece in pieces)
            told = f"claimed: {verdict.claimed}\ntrue:    {verdict.truth}\nread:    {verdict.how_read}\n{raw}"
            name = f"{verdict.kind.value} {verdict.reporter} on {verdict.subject}"
            allure.attach(redact(told), name=redact(name), attachment_type=allure.attachment_type.TEXT)


class AllureSecrets:
    """A plugin of allure-commons: masks results before they are written. Attachments come from reports."""

    @hookimpl(tryfirst=True)
    def report_result(self, result: Any) -> None:
        """Mask a result and its steps."""
        _mask(result)

    @hookimpl(tryfirst=True)
    def report_container(self, container: Any) -> None:
        """Mask what fixtures did."""
        _mask(container)


def _mask(item: Any) -> None:
    """Mask all text of an object of Allure's, in place, and of what hangs on it."""
    for name, value in vars(item).items():
        if isinstance(value, str):
            setattr(item, name, redact(value))
        elif isinstance(value, list):
            for part in value:
                if not isinstance(part, _PLAIN):
                    _mask(part)
        elif not isinstance(value, _PLAIN) and hasattr(value, "__dict__") and not isinstance(value, type):
            _mask(value)
