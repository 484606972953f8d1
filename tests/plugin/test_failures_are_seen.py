"""With the plugin installed, a test that fails fails: of a lab or not, in every phase."""

import pytest
from support.plans import lines_with

PLAN = """
@pytest.fixture
def bad_setup():
    raise RuntimeError("setup")

@pytest.fixture
def bad_teardown():
    yield
    raise RuntimeError("teardown")

def test_call():
    raise RuntimeError("call")

def test_assertion():
    assert False

def test_setup(bad_setup):
    pass

def test_teardown(bad_teardown):
    pass

def test_fails():
    pytest.fail("fail")

def test_skips():
    pytest.skip("skip")

@pytest.mark.xfail(strict=True)
def test_expected():
    assert False

@pytest.mark.xfail(strict=True)
def test_unexpected():
    pass

def test_passes():
    pass
"""
COUNTS = "4 failed, 2 passed, 1 skipped, 1 xfailed, 2 errors"


@pytest.mark.parametrize("plugin", ["hil", "no:hil"])
def test_tests_without_a_lab_end_as_they_do_without_the_plugin(plan, plugin: str) -> None:
    run = plan.run(PLAN, *(() if plugin == "hil" else ("-p", plugin)))
    assert run.code == pytest.ExitCode.TESTS_FAILED
    assert lines_with(run.stdout, COUNTS), run.stdout[-300:]


def test_tests_of_a_lab_fail_in_every_phase(plan) -> None:
    source = PLAN.replace("():", "(lab):").replace("(bad_setup):", "(lab, bad_setup):")
    run = plan.run(source.replace("(bad_teardown):", "(lab, bad_teardown):"), "--junitxml=junit.xml")
    assert run.code == pytest.ExitCode.TESTS_FAILED
    wrong = {name for name, case in run.junit.items() if case.keys() & {"failure", "error"}}
    assert wrong == {
        f"test_{name}" for name in ("call", "assertion", "setup", "teardown", "fails", "skips", "unexpected")
    }
