"""A judgement as JUnit XML, for a build server: device, outcome and verdicts are properties of each case."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from xml.etree import ElementTree as ET

from harness.judgement.judge import Judgement, ScenarioJudgement
from harness.judgement.model import RunState
from harness.report.printable import printable

#: Characters that no XML 1.0 document may hold (W3C Recommendation XML 1.0, section 2.2).
_ILLEGAL: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: Run states that are errors of the lab or of the harness; the others are skipped, with their reason.
_ERRORS: Final = (RunState.INFRA, RunState.BUG)


def junit_xml(judgement: Judgement, requirements: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return the document: one suite, one case for each scenario.

    :param requirements: scenario -> the ids of those that it is a proof of.

    Not as stated is a failure; INFRA, BUG and a scenario that was cut off are errors; BLOCKED, REFUSED and
    NOT_APPLICABLE are skipped with their reason. Each has its state, too, as a property.
    """
    suite = ET.Element("testsuite", name=_legal(judgement.runs[0].lab if judgement.runs else "hil"))
    for one in judgement.scenarios:
        _case(suite, one, (requirements or {}).get(one.name, ()))
    for kind, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(kind, str(len(suite.findall(f"testcase/{tag}"))))
    suite.set("tests", str(len(judgement.scenarios)))
    whole = ET.Element("testsuites")
    whole.append(suite)
    ET.indent(whole)
    return ET.tostring(whole, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, one: ScenarioJudgement, requirements: Sequence[str]) -> None:
    module, _, name = one.name.partition("::")
    case = ET.SubElement(suite, "testcase", classname=_legal(module), name=_legal(name or module))
    properties = ET.SubElement(case, "properties")
    said = {"device": one.subject.name if one.subject else "", "state": one.state}
    said |= {"outcome": one.outcome.value if one.outcome else ""}
    said |= {f"verdict.{reporter}": kind.value for reporter, kind in one.verdicts.items()}
    for key, value in [*said.items(), *(("requirement", each) for each in requirements)]:
        ET.SubElement(properties, "property", name=_legal(key), value=_legal(value))
    word = _word(one)
    if word is not None:
        reasons = "\n".join([*one.reasons, one.state_reason]).strip()
        told = ET.SubElement(case, word, message=_legal(f"{one.state}: {reasons.partition(chr(10))[0]}"))
        told.text = _legal(reasons)


def _word(one: ScenarioJudgement) -> str | None:
    if one.reasons and not one.as_stated:
        return "failure"
    if one.interrupted or one.run_state in _ERRORS:
        return "error"
    return None if one.run_state is None else "skipped"


def _legal(text: str) -> str:
    return _ILLEGAL.sub("?", printable(text))
