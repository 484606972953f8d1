"""Keeps secrets out of what Allure writes; loaded only where its results are wanted."""

from __future__ import annotations

from typing import Any

from allure_commons import hookimpl

from harness.record.redaction import redact

_PLAIN = (str, int, float, bool, bytes, type(None))


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
