"""Lab time stands still while anybody acts and jumps when all wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from harness.emulator.clock import Alarm, LabClock
from harness.errors import HarnessBug


@pytest.fixture
def clock() -> Iterator[LabClock]:
    clock = LabClock()
    yield clock
    clock.close()


def finish(*threads: threading.Thread) -> None:
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_an_hour_of_lab_time_takes_no_real_time(clock: LabClock) -> None:
    begun = time.monotonic()
    with clock.actor():
        clock.sleep(3600)
    assert clock.now() == 3600
    assert time.monotonic() - begun < 1


def test_events_happen_in_order_at_their_time(clock: LabClock) -> None:
    seen: list[tuple[str, float]] = []
    with clock.actor():
        clock.at(5, lambda: seen.append(("b", clock.now())))
        clock.at(2, lambda: seen.append(("a", clock.now())))
        clock.at(5, lambda: seen.append(("c", clock.now())))
        clock.at(9, lambda: seen.append(("later", clock.now())))
        assert seen == []
        clock.sleep(6)
        assert clock.now() == 6
    assert seen[:3] == [("a", 2), ("b", 5), ("c", 5)]


def test_time_stands_still_while_an_actor_runs(clock: LabClock) -> None:
    happened = threading.Event()
    with clock.actor():
        clock.at(1, happened.set)
        assert not happened.wait(0.05)
        assert clock.now() == 0
    assert happened.wait(5)


def test_time_waits_for_the_slowest_of_two_actors(clock: LabClock) -> None:
    order: list[tuple[str, float]] = []

    def act(name: str, step: float) -> None:
        with clock.actor():
            for _ in range(3):
                clock.sleep(step)
                order.append((name, clock.now()))

    with clock.actor():
        threads = [threading.Thread(target=act, args=args) for args in (("slow", 10.0), ("quick", 4.0))]
        for thread in threads:
            thread.start()
        while len(clock._sleepers) < 2:
            time.sleep(0.001)
    finish(*threads)
    assert order == [
        ("quick", 4),
        ("quick", 8),
        ("slow", 10),
        ("quick", 12),
        ("slow", 20),
        ("slow", 30),
    ]


def test_a_cancelled_event_does_not_happen(clock: LabClock) -> None:
    seen: list[int] = []
    with clock.actor():
        event = clock.at(1, lambda: seen.append(1))
        event.cancel()
        event.cancel()
        clock.sleep(2)
    assert seen == []


def test_background_events_do_not_draw_time(clock: LabClock) -> None:
    seen: list[float] = []
    with clock.actor():
        clock.at(10, lambda: seen.append(clock.now()), background=True)
        clock.at(1, lambda: None)
    deadline = time.monotonic() + 5
    while clock.now() < 1 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.02)
    assert (clock.now(), seen) == (1, [])
    with clock.actor():
        clock.sleep(20)
    assert seen == [10]


def test_a_withheld_event_stops_time_until_it_is_thawed(clock: LabClock) -> None:
    woken = threading.Event()

    def sleep() -> None:
        with clock.actor():
            clock.sleep(8)
            woken.set()

    with clock.actor():
        event = clock.at(5, lambda: None)
        clock.freeze_before(event)
        thread = threading.Thread(target=sleep)
        thread.start()
        clock.sleep(3)
    assert not woken.wait(0.05)
    assert clock.now() == 3
    clock.thaw(event)
    assert woken.wait(5)
    assert clock.now() == 8
    finish(thread)


def test_cancelling_a_withheld_event_lets_time_go_on(clock: LabClock) -> None:
    thread = threading.Thread(target=lambda: clock.sleep(8))
    with clock.actor():
        event = clock.at(5, lambda: None, withheld=True)
        thread.start()
        clock.sleep(1)
    event.cancel()
    finish(thread)
    assert clock.now() == 8


def test_an_alarm_ends_a_sleep_and_every_later_one(clock: LabClock) -> None:
    alarm = Alarm()
    result: list[bool] = []

    def sleep() -> None:
        with clock.actor():
            result.append(clock.sleep(100, alarm))
            result.append(clock.sleep(100, alarm))

    with clock.actor():
        event = clock.at(5, lambda: None, withheld=True)  # keeps time from going to the end of the sleep
        thread = threading.Thread(target=sleep)
        thread.start()
        clock.sleep(1)
        clock.ring(alarm)
    finish(thread)
    assert result == [False, False]
    assert clock.now() == 1
    event.cancel()


def test_an_actor_that_waits_for_something_else_lets_time_pass(clock: LabClock) -> None:
    done = threading.Event()
    with clock.actor():
        clock.at(7, done.set)
        with clock.waiting():
            assert done.wait(5)
        assert clock.now() == 7


def test_a_callback_must_not_sleep(clock: LabClock) -> None:
    errors: list[Exception] = []

    def callback() -> None:
        try:
            clock.sleep(1)
        except HarnessBug as error:
            errors.append(error)

    with clock.actor():
        clock.at(1, callback)
        clock.sleep(2)
    assert len(errors) == 1


def test_an_event_that_an_event_schedules_happens(clock: LabClock) -> None:
    seen: list[float] = []
    with clock.actor():
        clock.at(1, lambda: clock.at(clock.now() + 1, lambda: seen.append(clock.now())) and None)
        clock.sleep(3)
    assert seen == [2]


def test_events_happen_without_any_actor() -> None:
    clock = LabClock()
    happened = threading.Event()
    clock.at(1000, happened.set)
    assert happened.wait(5)
    assert clock.now() == 1000
    clock.close()


def test_scaled_time_passes_by_itself_and_stops_before_a_withheld_event() -> None:
    clock = LabClock(scale=1000)
    happened = threading.Event()
    event = clock.at(20, happened.set, withheld=True)
    clock.sleep(10)
    assert clock.now() >= 10
    time.sleep(0.04)
    assert clock.now() == 20
    assert not happened.is_set()
    clock.thaw(event)
    assert happened.wait(5)
    clock.close()


def test_close_ends_sleepers_and_the_thread() -> None:
    clock = LabClock(scale=1)
    thread = threading.Thread(target=lambda: clock.sleep(1000))
    thread.start()
    while not clock._sleepers:
        time.sleep(0.001)
    clock.close()
    finish(thread)
    assert not any(thread.name == "lab-clock" for thread in threading.enumerate())


def test_many_threads_neither_hang_nor_lose_a_wake_up(clock: LabClock) -> None:
    total = [0]
    lock = threading.Lock()

    def act(step: float) -> None:
        for _ in range(50):
            with clock.actor():
                clock.sleep(step)
            clock.sleep(step / 2)
            with lock:
                total[0] += 1

    threads = [threading.Thread(target=act, args=(1 + number / 7,)) for number in range(8)]
    for thread in threads:
        thread.start()
    finish(*threads)
    assert total == [400]
