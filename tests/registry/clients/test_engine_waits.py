"""Waits of an engine between its tries, from what real ones said (20.10) while a registry was restarted."""

import pytest

from harness.registry.clients.engine_waits import seconds_waited

A, B = "a2d05b3c8010", "47425295eb30"


def stream(*said: tuple[str, str]) -> str:
    return "".join(
        f'{{"status":"{status}","progressDetail":{{}},"id":"{layer}"}}\r\n' for layer, status in said
    )


def counted_down(layer: str, seconds: int) -> list[tuple[str, str]]:
    return [(layer, f"Retrying in {left} second{'s' * (left > 1)}") for left in range(seconds, 0, -1)]


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ([], 0),
        ([(A, "Preparing"), (A, "Pushing"), (A, "Pushed")], 0),
        ([*counted_down(A, 5), (A, "Pushing"), (A, "Pushed")], 5),
        ([*counted_down(A, 5), (A, "Pushing"), *counted_down(A, 10), (A, "Pushed")], 15),
        # Two layers wait beside each other.
        ([each for pair in zip(counted_down(A, 5), counted_down(B, 5), strict=True) for each in pair], 4),
        # Another layer's error ended the push within the first second.
        ([(A, "Retrying in 5 seconds")], 0),
        ([(A, "Retrying in 5 seconds"), (A, "Retrying in 4 seconds"), (B, "Pushed")], 1),
    ],
)
def test_what_was_counted_down_was_waited(said, seconds) -> None:
    assert seconds_waited(stream(*said)) == seconds


def test_the_command_line_tells_the_same_in_its_words() -> None:
    lines = [f"{layer}: {status}" for layer, status in [*counted_down(A, 5), (A, "Pushed")]]
    assert seconds_waited("\n".join(["The push refers to repository [x/y]", *lines, "v1: digest: ..."])) == 5
