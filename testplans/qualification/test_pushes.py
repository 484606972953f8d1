"""What must hold of a push through the client that the lab trusts, whatever happens around it.

A client that reads back what it has pushed lands it, or says that it did not.
"""

import pytest

BEFORE_MANIFEST = "before:manifest-put"


def test_a_push_lands_and_is_said_to(push, push_client) -> None:
    """Nothing disturbs it."""
    pushed = push(push_client, "small")
    push.look_again(pushed)


@pytest.mark.parametrize("point", ["before:blob-post", BEFORE_MANIFEST])
def test_a_push_outlives_new_token_keys(push, push_client, point: str) -> None:
    """The registry, then the token service, are restarted with another key in the middle of it."""
    push(push_client, "small", at=point, action="rotate-keys")


def test_a_push_over_an_older_image_outlives_new_token_keys(push, push_client) -> None:
    """What stands under the tag afterwards is the new image."""
    push(push_client, "tiny")
    push(push_client, "small", before=True, at=BEFORE_MANIFEST, action="rotate-keys")


def test_layers_that_were_collected_are_pushed_again(push, push_client) -> None:
    """The registry goes on with its caches, and takes a manifest whose layers are gone."""
    pushed = push(push_client, "small", at=BEFORE_MANIFEST, action="collect-garbage")
    push.look_again(pushed)
