"""Lines of the second field report, and of a registry, tied to the push that they speak of."""

import pytest

from harness.registry.log_claims import dockerd_says, registry_says, sysinv_says
from harness.registry.logs import parse_log
from harness.registry.reference import parse_reference

_SAYS = "129181 INFO sysinv.conductor.kube_app [-]"
_NAME = "quay.io/jetstack/cert-manager-acmesolver:v0.15.0"
SYSINV = [
    f"sysinv 2022-09-21 18:56:09.501 {_SAYS} Image registry.local:9001/{_NAME} is not available in local "
    "registry, download started from public/private registry",
    f"sysinv 2022-09-21 18:56:18.956 {_SAYS} Remove image registry.central:9001/{_NAME} after push to local "
    "registry.",
    f"sysinv 2022-09-21 18:56:18.986 {_SAYS} Image registry.local:9001/{_NAME} download succeeded "
    "in 9 seconds",
]
DOCKERD = """\
2022-09-21T18:56:25.371 controller-0 dockerd[98916]: info time="2022-09-21T18:56:25.371358034Z" level=error \
msg="Upload failed: unauthorized: authentication required"
2022-09-21T18:56:25.371 controller-0 dockerd[98916]: info time="2022-09-21T18:56:25.371428551Z" level=info \
msg="Attempting next endpoint for push after error: unauthorized: authentication required"
""".splitlines()
REGISTRY = (
    'time="2022-09-21T18:56:25Z" level=info msg="response completed" http.request.method={} '
    'http.request.uri="/v2/a/b/manifests/1" http.response.status={}'
)


def test_sysinv_says_done_of_the_image_that_it_names() -> None:
    name = "registry.local:9001/quay.io/jetstack/cert-manager-{}:v0.15.0"
    said = sysinv_says(parse_log(SYSINV), parse_reference(name.format("acmesolver")))
    assert said is not None
    assert (said.reporter, said.result, said.entry.raw) == ("log:sysinv", "done", SYSINV[-1])
    assert sysinv_says(parse_log(SYSINV), parse_reference(name.format("webhook"))) is None


def test_an_image_of_which_only_the_start_was_logged_was_not_reported() -> None:
    image = parse_reference("registry.local:9001/quay.io/jetstack/cert-manager-acmesolver:v0.15.0")
    assert sysinv_says(parse_log(SYSINV[:2]), image) is None


def test_an_engine_that_gives_up_says_that_it_failed_and_why() -> None:
    said = dockerd_says(parse_log(DOCKERD))
    assert said is not None
    assert (said.reporter, said.result) == ("log:dockerd", "failed")
    assert said.error == "unauthorized: authentication required"
    assert dockerd_says(parse_log(DOCKERD[:1])) is None


@pytest.mark.parametrize(
    ("lines", "result"),
    [
        ([("PUT", 201)], "done"),
        ([("PUT", 401)], "failed"),
        ([("PUT", 401), ("PUT", 201)], "done"),
        ([("GET", 200)], None),
        ([], None),
    ],
)
def test_the_registrys_last_answer_to_the_manifest_counts(lines, result) -> None:
    entries = list(parse_log(REGISTRY.format(*line) for line in lines))
    said = registry_says(entries, parse_reference("registry.local:9001/a/b:1"))
    assert (said.result if said else None) == result
    assert registry_says(entries, parse_reference("registry.local:9001/a/b:2")) is None
