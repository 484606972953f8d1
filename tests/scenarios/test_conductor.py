"""The model of the conductor: what upstream's commit message of the second field report says of it."""

import pytest

from harness.scenarios.conductor import Conductor


class Installs:
    """Counts what the conductor has installed."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


@pytest.fixture
def installs() -> Installs:
    return Installs()


@pytest.mark.parametrize("state", ["restore-requested", "applying"])
def test_a_certificate_waits_until_the_application_has_left_these_states(
    installs: Installs, state: str
) -> None:
    conductor = Conductor(installs, defers=True)
    conductor.applications["cert-manager"] = state
    assert conductor.install_certificate() == f"deferred: cert-manager is {state}"
    assert conductor.audit() == f"deferred: cert-manager is {state}"
    assert installs.count == 0
    conductor.applications["cert-manager"] = "applied"
    assert conductor.audit() == "installed: the registry was restarted, then the token service"
    assert (installs.count, conductor.audit()) == (1, "nothing is deferred")


@pytest.mark.parametrize(("defers", "state"), [(False, "restore-requested"), (True, "uploading")])
def test_a_certificate_is_installed_at_once(installs: Installs, defers: bool, state: str) -> None:
    conductor = Conductor(installs, defers=defers)
    conductor.applications["cert-manager"] = state
    assert conductor.install_certificate().startswith("installed")
    assert installs.count == 1


def test_a_conductor_that_restarts_has_forgotten_what_it_deferred(installs: Installs) -> None:
    conductor = Conductor(installs, defers=True)
    conductor.applications["cert-manager"] = "applying"
    conductor.install_certificate()
    conductor.restart()
    assert conductor.applications == {"cert-manager": "applying"}
    conductor.applications["cert-manager"] = "applied"
    assert (conductor.audit(), installs.count) == ("nothing is deferred", 0)
