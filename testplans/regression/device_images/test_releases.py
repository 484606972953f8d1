"""One life of device images on a system of each release: exactly what its known defects predict diverges.

Which defects a release has, `hil defects list --release NAME` says; what each makes of this life stands here.
"""

import pytest

from harness.lab.known_defects import known_defects, known_releases

#: Defect -> what it makes of the life below: reporter -> verdict. The others do not show in it.
SHOWN = {
    "apply-again-resets": {"sysinv-image-state": "MISREPORT"},
    "remove-leaves-host-pending": {"sysinv-host": "STALE"},
    "alarm-without-update": {"alarm-900.006": "STALE"},
    "inventory-reported-once": {"sysinv-device": "STALE"},
}


def of(release):
    """Return the parameter of a release: a system of it, and what is stated for it."""
    held = [defect["name"] for defect in known_defects(release, kind="system")]
    verdicts = {reporter: kind for name in held for reporter, kind in SHOWN.get(name, {}).items()}
    marks = [pytest.mark.hil_release(release), pytest.mark.hil_expects(verdicts=verdicts)]
    return pytest.param("standard", id=release, marks=marks)


@pytest.mark.hil_lab("device-images")
@pytest.mark.parametrize("system", [of(release) for release in known_releases()], indirect=True)
def test_life_on_a_release(system):
    """A user image by a label, once more when it is there; one that is taken back; a root key."""
    system.label(site="lab")
    image = system.upload("A/csk0")
    system.apply(image, site="lab")
    system.update()
    system.boot()
    system.apply(image, site="lab")
    system.remove(image, site="lab")
    system.delete(image)
    other = system.upload("A/csk0-v2")
    system.apply(other)
    system.remove(other)
    system.apply(system.upload("root-key-A"))
    system.update()
    system.pass_time(1200)
