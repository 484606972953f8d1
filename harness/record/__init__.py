"""The history of a run: written as it happens, without secrets, and read back to be judged again."""

from harness.record.history import History, read_history
from harness.record.redaction import Redactor, redact, register_secret

__all__ = ["History", "Redactor", "read_history", "redact", "register_secret"]
