"""Steps about images that a registry holds already: put under another name, and deleted."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING

from harness.judgement.records import Claim, Evidence, Intent, Observation
from harness.plugin.scenario import step
from harness.record.operations import Underway, recorded_operation
from harness.scenarios.steps import is_step

if TYPE_CHECKING:
    from harness.plugin.pushing import Push
    from harness.registry.push_driver import Transfer


@is_step("copy-image", of="push", content="content", source="text", repository="text", tag="text")
def copy_image(push: Push, content: str, *, source: str, repository: str, tag: str = "v1") -> Transfer:
    """Put an image that a repository has under another tag, or into another repository, without its layers.

    :param source: the repository that has it; in another one its blobs are mounted from there.
    """
    from harness.registry.clients.oci_existing import ExistingPush

    client = ExistingPush("" if source == repository else source)
    image, there = push.content(content), push.bench.destination(repository, tag, client=client.name)
    driver = push.driver(client.name, client)
    with step(push.session, push.bench.name, f"{client.name} {there.reference}"):
        return push.note(driver.push(image, there), driver, repository, tag)


@is_step("delete-image", of="push", pushed="results")
def delete_image(push: Push, *pushed: Transfer) -> None:
    """Delete the manifest that these pushes of one repository have put there, with their tags.

    It is asked of the registry that the lab has; what is gone then is read by API and store.
    """
    from harness.registry.clients.oci_existing import delete_manifest
    from harness.registry.push_driver import PROBE, values_of

    first = pushed[0]
    there = push.bench.destination(first.reference.repository, first.reference.tag, client="oci-delete")
    with step(push.session, push.bench.name, f"delete {there.reference}"), ExitStack() as underway:
        # It is taken away on purpose, tag by tag.
        numbers = [underway.enter_context(_deletion(push, each)).intent for each in pushed]
        report = delete_manifest(there, first.expected.digest)
    for number, each in zip(numbers, pushed, strict=True):
        statement = {"result": report.result, "digest": report.digest, "error": report.error}
        said = Evidence(text=report.text, command=report.command)
        push.session.history.add(
            Claim(
                reporter="oci-delete", subject=each.subject, statement=statement, evidence=said, intent=number
            )
        )
        truth = push.bench.probe.image(each.reference, restart=False)
        push.session.history.add(
            Observation(
                probe=PROBE,
                subject=each.subject,
                moment="after",
                values=values_of(truth),
                sources={"state": "the API and the store"},
                intent=number,
            )
        )
        gone = truth.state.value == "ABSENT"
        assert gone, f"{each.reference} was deleted, and is {truth.state.value}: {report.text}"


def _deletion(push: Push, pushed: Transfer) -> AbstractContextManager[Underway]:
    parameters = {"reference": str(pushed.reference), "digest": pushed.expected.digest}
    intent = Intent(operation="delete", subject=pushed.subject, parameters=parameters)
    return recorded_operation(push.session.history, intent)
