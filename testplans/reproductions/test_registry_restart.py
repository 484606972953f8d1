"""The second field report, reproduced: images that were said to be pushed while the registry was restarted.

Five images are downloaded at the same time. One is in the registry before the new certificate is installed:
tokens get another key, the registry is restarted, then the token service. The others are pushed with tokens
of before. The engine tells its client that they were refused; the client does not listen, and logs success.
"""

import pytest

from harness.registry.images import ImageRecipe, sized_layers
from harness.registry.log_claims import REFUSED
from harness.scenarios.conductor import Conductor

APP, TAG = "cert-manager", "v0.15.0"
FIRST = "quay.io/jetstack/cert-manager-acmesolver"
REST = [
    "quay.io/jetstack/cert-manager-cainjector",
    "quay.io/jetstack/cert-manager-controller",
    "quay.io/jetstack/cert-manager-webhook",
    "quay.io/external_storage/rbd-provisioner",
]
#: What is asked for in the middle of the downloads, as the history names it.
ASKED = "install-certificate"
UNAUTHORIZED = "unauthorized: authentication required"
DOWNLOADER = ("sysinv-download", "log:sysinv")

LOST = pytest.mark.hil_expects(outcome="FAILED", verdicts=dict.fromkeys(DOWNLOADER, "FALSE_SUCCESS"))


@pytest.fixture
def release(request):
    """The five images of a release, by its name; no two scenarios have a layer in common."""

    def images(name):
        seed = f"{request.node.nodeid} {name}"
        return {each: ImageRecipe(sized_layers(2, 1 << 16, seed=f"{seed} {each}")) for each in (FIRST, *REST)}

    return images


@pytest.fixture
def conductor(registry):
    """Returns a model of the conductor that installs a certificate in the report's order, and says so."""
    return lambda *, defers: Conductor(lambda: registry.lab.rotate(("registry", "tokens")), defers=defers)


def kinds(judge, transfer):
    """What each reporter's word on one push is worth."""
    return {each.reporter: each.kind.value for each in judge().judged if each.intent == transfer.intent}


def evidence(history, transfer):
    """What was said of one push, verbatim, by reporter."""
    claims = [each for each in history.records if each.kind == "claim" and each.intent == transfer.intent]
    return {each.reporter: each.evidence.text for each in claims}


@LOST
def test_registry_restarts_before_the_token_service(download, release, conductor, judge, history):
    """The report: one image MATCH, pushed before the restart, the others FALSE_SUCCESS."""
    deciding = conductor(defers=False)
    deciding.applications[APP] = "restore-requested"
    done = download(APP, release("N"), tag=TAG, hold=REST, meanwhile=(ASKED, deciding.install_certificate))
    assert kinds(judge, done[FIRST]) == dict.fromkeys((*DOWNLOADER, "log:registry"), "MATCH")
    for name in REST:
        told = dict.fromkeys(("log:dockerd", "log:registry"), "MATCH")
        assert kinds(judge, done[name]) == told | dict.fromkeys(DOWNLOADER, "FALSE_SUCCESS")
        said = evidence(history, done[name])
        assert f"Image {done[name].reference} download succeeded in" in said["log:sysinv"]
        assert f"Upload failed: {UNAUTHORIZED}" in said["log:dockerd"]
        assert f"Attempting next endpoint for push after error: {UNAUTHORIZED}" in said["log:dockerd"]
        assert REFUSED in said["log:registry"]
        assert UNAUTHORIZED in said["sysinv-download"], "the client was told, and did not listen"


def test_remedy_the_registry_is_asked_after_each_push(download, release, conductor, judge):
    """inspect_distribution after the push (2025-06): what was lost is seen, and the next try brings it."""
    deciding = conductor(defers=False)
    deciding.applications[APP] = "restore-requested"
    meanwhile = (ASKED, deciding.install_certificate)
    done = download(APP, release("N"), tag=TAG, form="remedied", hold=REST, meanwhile=meanwhile)
    for name in REST:
        assert UNAUTHORIZED in done[name].report.text, "the first try was refused"
        assert kinds(judge, done[name])["sysinv-download"] == "MATCH"


@LOST
def test_remedy_the_registry_is_asked_and_has_an_older_image(download, release, conductor, judge):
    """The hole in it: a tag that leads to the image of before is taken for the one that was pushed."""
    deciding = conductor(defers=False)
    download(APP, release("N-1"), tag=TAG, form="remedied")
    deciding.applications[APP] = "restore-requested"
    meanwhile = (ASKED, deciding.install_certificate)
    done = download(APP, release("N"), tag=TAG, form="remedied", hold=REST, meanwhile=meanwhile)
    assert done[FIRST].truth.state.value == "COMPLETE"
    assert {done[name].truth.state.value for name in REST} == {"WRONG"}
    assert {kinds(judge, done[name])["sysinv-download"] for name in REST} == {"FALSE_SUCCESS"}


def test_remedy_the_certificate_is_deferred_while_images_are_downloaded(
    download, release, conductor, registry
):
    """The certificate waits (2023-03) until the application has left the state: nothing is lost."""
    deciding = conductor(defers=True)
    deciding.applications[APP] = "restore-requested"
    before = registry.lab.keys.installed.number
    download(APP, release("N"), tag=TAG, hold=REST, meanwhile=(ASKED, deciding.install_certificate))
    assert registry.lab.keys.installed.number == before
    deciding.applications[APP] = "applied"
    assert deciding.audit().startswith("installed")
    assert registry.lab.keys.installed.number == before + 1


@LOST
def test_the_deferral_is_forgotten_when_the_conductor_restarts(download, release, conductor, registry, judge):
    """Nobody installs what was deferred; asked for again, it comes while an upload nobody waits for runs.

    What the conductor does not count are the uploads outside of restore and apply, such as
    `application-upload --images` (fact sheet of StarlingX, section 7.2).
    """
    deciding = conductor(defers=True)
    deciding.applications[APP] = "restore-requested"
    before = registry.lab.keys.installed.number
    meanwhile = (ASKED, deciding.install_certificate)
    done = download(APP, release("N"), tag=TAG, hold=REST, meanwhile=meanwhile)
    assert {kinds(judge, each)["sysinv-download"] for each in done.values()} == {"MATCH"}
    deciding.restart()
    deciding.applications[APP] = "applied"
    assert deciding.audit() == "nothing is deferred"
    assert registry.lab.keys.installed.number == before, "the certificate never came"
    deciding.applications["uploaded-by-hand"] = "uploading"
    done = download("uploaded-by-hand", release("N+1"), tag="v0.16.0", hold=REST, meanwhile=meanwhile)
    assert {kinds(judge, done[name])["sysinv-download"] for name in REST} == {"FALSE_SUCCESS"}
