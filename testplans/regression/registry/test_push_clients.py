"""Clients without an engine push to a registry whose keys change at exact points of the push.

What is expected was measured (fact sheet of the registry, section 3, table "rotate"): a client with one
token for all of a push fails and says so; one that renews its token lands; none claims what is not so,
but for a client whose last answer was cut.
"""

import pytest

CLIENTS = ["oci-once", "oci-renew", "skopeo", "verified-push"]
RENEWING = ["oci-renew", "verified-push"]

#: Registry first, then the token service, as in the second field report.
ROTATED = "rotate-keys"
FAILS = pytest.mark.hil_expects(outcome="FAILED")


@pytest.mark.parametrize("client", CLIENTS)
def test_an_undisturbed_push_lands(push, client):
    """Without a fault every client lands, and says so."""
    push(client, "small")


@pytest.mark.parametrize("point", ["after:blob-put", "before:manifest-put"])
@pytest.mark.parametrize(
    "client",
    [
        pytest.param("oci-once", marks=FAILS),
        pytest.param("skopeo", marks=FAILS),
        *RENEWING,
    ],
)
def test_keys_change_in_the_middle_of_a_push(push, client, point):
    """What was granted before the restart is not taken after it: one fails, the other asks again."""
    push(client, "small", at=point, action=ROTATED)


@pytest.mark.parametrize(
    "client",
    [
        pytest.param("oci-once", marks=pytest.mark.hil_expects(verdicts={"oci-once": "FALSE_FAILURE"})),
        pytest.param("skopeo", marks=pytest.mark.hil_expects(verdicts={"skopeo": "FALSE_FAILURE"})),
        *RENEWING,
    ],
)
def test_the_answer_to_the_manifest_is_cut_while_keys_change(push, client):
    """The image is there, and a client that gives up without the answer says that it is not."""
    push(client, "small", at="cut:manifest-put", action=ROTATED)
