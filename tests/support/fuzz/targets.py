"""Every reader of untrusted bytes that is fuzzed."""

from __future__ import annotations

from support.fuzz import documents, field_logs, hosts, images, plans, reaching, registry, texts
from support.fuzz.engine import Target

ALL: tuple[Target, ...] = (
    *images.TARGETS,
    *texts.TARGETS,
    *documents.TARGETS,
    *plans.TARGETS,
    *hosts.TARGETS,
    *registry.TARGETS,
    *field_logs.TARGETS,
    *reaching.TARGETS,
)
BY_NAME = {target.name: target for target in ALL}
