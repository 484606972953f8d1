"""Pushes through real clients to a real registry: what is recorded of them, and how that is judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import InfrastructureError
from harness.judgement.judge import ScenarioJudgement, judge_scenario
from harness.judgement.model import Outcome, VerdictKind
from harness.judgement.records import (
    Claim,
    Completion,
    Fault,
    Intent,
    Observation,
    Record,
    ScenarioEnded,
    ScenarioStarted,
)
from harness.record import History, read_history
from harness.registry.assembled import ACCOUNT, PASSWORD, RegistryLab
from harness.registry.clients.catalogue import Surroundings, open_pull_client, open_push_client
from harness.registry.clients.protocol import Destination, Report
from harness.registry.images import Image, ImageRecipe, make_image, sized_layers
from harness.registry.push_driver import PushDriver, Transfer
from harness.registry.reference import Reference, parse_reference
from harness.registry.truth import Expected

IMAGE = make_image(ImageRecipe(sized_layers(2, 1 << 16)))


class Harness:
    """A registry, a client and a history, put together as a scenario has them."""

    def __init__(self, lab: RegistryLab, folder: Path) -> None:
        self.lab = lab
        self.history = History(folder / "history.jsonl")
        self.surroundings = Surroundings(folder)
        self.history.add(ScenarioStarted(scenario="pushes"))

    def driver(self, client: str = "oci-once", registry: str = "") -> PushDriver:
        return PushDriver(
            self.history,
            open_push_client(client, self.surroundings),
            self.lab.probe,
            service=self.lab.registry,
            registry=registry,
        )

    def place(self, tag: str = "1", password: str = PASSWORD) -> Destination:
        host = self.lab.endpoint.url.partition("://")[2]
        return Destination(
            Reference(host, "a/b", tag), ca_file=self.lab.authority.file, user=ACCOUNT, password=password
        )

    def judged(self) -> ScenarioJudgement:
        self.history.add(ScenarioEnded(scenario="pushes"))
        assert tuple(read_history(self.history.path)) == self.history.records
        return judge_scenario(self.history.records)

    def recorded(self, kind: type[Record]) -> list[Record]:
        return [record for record in self.history.records if isinstance(record, kind)]


@pytest.fixture
def harness(lab: RegistryLab, tmp_path: Path) -> Iterator[Harness]:
    made = Harness(lab, tmp_path)
    with made.history:
        yield made


def layer_file(lab: RegistryLab, image: Image) -> Path:
    digest = image.layers[0].digest.removeprefix("sha256:")
    return Path(lab.registry.storage) / f"docker/registry/v2/blobs/sha256/{digest[:2]}/{digest}/data"


def test_a_push_is_recorded_in_the_order_in_which_it_happens(harness) -> None:
    done = harness.driver().push(IMAGE, harness.place())
    kinds = [type(record) for record in harness.history.records[1:]]
    assert kinds == [Intent, Completion, Claim, Claim, Observation]
    intent = harness.history.records[1]
    assert (intent.subject.kind, intent.subject.name) == ("registry-image", str(harness.place().reference))
    assert intent.parameters["content"]["digest"] == IMAGE.digest
    assert done.intent == intent.seq


def test_an_image_has_one_name_however_clients_spell_its_registry(harness) -> None:
    driver, place = harness.driver(registry="registry.local"), harness.place()
    port = place.reference.registry.rpartition(":")[2]
    spelled = [f"127.0.0.1:{port}/a/b:1", f"localhost:{port}/a/b:1"]
    for text in spelled:
        driver.push(IMAGE, replace(place, reference=parse_reference(text)))
    assert {
        each.subject.name for each in harness.history.records[1:] if not isinstance(each, Completion)
    } == {"registry.local/a/b:1"}
    assert [each.parameters["reference"] for each in harness.recorded(Intent)] == spelled


def test_a_push_that_lands_is_as_intended_and_its_client_right(harness) -> None:
    harness.driver().push(IMAGE, harness.place(), before=True)
    judged = harness.judged()
    assert judged.outcome is Outcome.AS_INTENDED
    assert judged.verdicts == {"oci-once": VerdictKind.MATCH, "log:registry": VerdictKind.MATCH}
    before, after = harness.recorded(Observation)
    assert (before.values["state"], after.values["state"]) == ("ABSENT", "COMPLETE")
    assert after.values["digest"] == after.values["store"]["digest"] == IMAGE.digest


def test_evidence_is_what_the_client_said_verbatim(harness) -> None:
    done = harness.driver().push(IMAGE, harness.place())
    claim = harness.recorded(Claim)[0]
    assert claim.statement["digest"] == IMAGE.digest
    assert claim.evidence.text == done.report.text != ""


def test_the_registrys_own_log_line_is_tied_to_the_push(harness) -> None:
    harness.driver().push(IMAGE, harness.place("other"))
    harness.driver().push(IMAGE, harness.place())
    (first, second) = [claim for claim in harness.recorded(Claim) if claim.reporter == "log:registry"]
    assert "/v2/a/b/manifests/other" in first.evidence.text
    assert "/v2/a/b/manifests/1" in second.evidence.text


def test_a_push_that_is_refused_fails_and_says_so(harness) -> None:
    harness.driver().push(IMAGE, harness.place(password="wrong"))
    judged = harness.judged()
    assert (judged.outcome, judged.verdicts["oci-once"]) == (Outcome.FAILED, VerdictKind.MATCH)


def test_a_client_that_says_done_whatever_happens_is_caught(harness, monkeypatch) -> None:
    driver = harness.driver()
    honest = type(driver._client).push

    def naive(self, content, destination, *, deadline) -> Report:
        said = honest(self, content, destination, deadline=deadline)
        return Report("done", said.text, command=said.command)

    monkeypatch.setattr(type(driver._client), "push", naive)
    driver.push(IMAGE, harness.place(password="wrong"))
    judged = harness.judged()
    assert (judged.outcome, judged.verdicts["oci-once"]) == (Outcome.FAILED, VerdictKind.FALSE_SUCCESS)


def test_what_the_store_lost_is_found_when_it_is_looked_at_again(harness) -> None:
    """The file is gone, and a cache goes on to show it (fact sheet of the registry, section 5)."""
    driver = harness.driver()
    done = driver.push(IMAGE, harness.place())
    layer_file(harness.lab, IMAGE).unlink()
    harness.lab.registry.restart()
    (truth,) = driver.look_again([done])
    assert truth.state.value == "PARTIAL"
    judged = harness.judged()
    assert (judged.outcome, judged.verdicts["oci-once"]) == (Outcome.FAILED, VerdictKind.FALSE_SUCCESS)


@pytest.mark.parametrize(("damage", "verdict"), [(False, "MATCH"), (True, "FALSE_SUCCESS")])
def test_a_push_over_the_same_image(harness, damage, verdict) -> None:
    """One byte is flipped: the next push finds the blob by its HEAD and does not repair it."""
    driver = harness.driver()
    driver.push(IMAGE, harness.place())
    if damage:
        with layer_file(harness.lab, IMAGE).open("r+b") as file:
            first = file.read(1)
            file.seek(0)
            file.write(bytes([first[0] ^ 1]))
    second: Transfer = driver.push(IMAGE, harness.place(), before=True)
    found = {v.intent: v.kind.value for v in harness.judged().judged if v.reporter == "oci-once"}
    assert found[second.intent] == verdict
    assert second.report.result == "done"


def test_what_runs_beside_a_push_is_given_its_number(harness) -> None:
    subject = harness.place().reference

    def beside(intent: int, report: Future[Report]) -> None:
        from harness.registry.push_driver import subject_of

        report.result(30.0)
        harness.history.add(
            Fault(point="x", action="y", subject=subject_of(subject), state="fired", intent=intent)
        )

    done = harness.driver().push(IMAGE, harness.place(), meanwhile=beside)
    (fault,) = harness.recorded(Fault)
    assert fault.intent == done.intent
    kinds = [type(record) for record in harness.history.records[1:]]
    assert kinds.index(Fault) < kinds.index(Completion)


def test_a_disturbance_that_fails_does_not_leave_the_push_without_a_completion(harness) -> None:
    def beside(intent: int, report: Future[Report]) -> None:
        raise InfrastructureError("the fault cannot be done")

    with pytest.raises(InfrastructureError):
        harness.driver().push(IMAGE, harness.place(), meanwhile=beside)
    (completion,) = harness.recorded(Completion)
    assert (completion.how, completion.error["kind"]) == ("raised", "infrastructure")


def test_a_pull_is_held_to_what_is_there(harness) -> None:
    driver = harness.driver()
    driver.push(IMAGE, harness.place())
    puller = open_pull_client("oci-pull", harness.surroundings)
    driver.pull(puller, harness.place(), Expected(IMAGE.digest))
    driver.pull(puller, harness.place("none"), Expected(IMAGE.digest))
    judged = harness.judged()
    assert [outcome.outcome.value for outcome in judged.outcomes] == ["AS_INTENDED", "AS_INTENDED", "FAILED"]
    assert judged.verdicts["oci-pull"] is VerdictKind.MATCH


def test_pushes_at_the_same_time_are_recorded_each_for_itself(harness) -> None:
    driver, client = harness.driver(), harness.driver()._client
    other = make_image(ImageRecipe(sized_layers(1, 1024, seed="other")))
    wanted = [(IMAGE, harness.place("1")), (other, harness.place("2"))]

    def act() -> list[Report]:
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda each: client.push(*each), wanted))

    def meanwhile(intents: Sequence[int], reports: Future[Sequence[Report]]) -> None:
        assert len(set(intents)) == 2
        assert [each.result for each in reports.result(30)] == ["done", "done"]

    done = driver.push_together(wanted, act, meanwhile=meanwhile)
    assert [each.reference.tag for each in done] == ["1", "2"]
    judged = harness.judged()
    assert [outcome.outcome for outcome in judged.outcomes] == [Outcome.AS_INTENDED] * 2
    assert {(v.intent, v.reporter, v.kind) for v in judged.judged} == {
        (each.intent, reporter, VerdictKind.MATCH)
        for each in done
        for reporter in ("oci-once", "log:registry")
    }
