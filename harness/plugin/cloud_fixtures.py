"""The fixture of scenarios about a distributed cloud."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from harness.plugin.scenario import Scenario
from harness.plugin.session import HilSession
from harness.plugin.system_fixtures import lab_of

if TYPE_CHECKING:
    from harness.lab.system_bench import Way
    from harness.plugin.clouds import Cloud
    from harness.plugin.images import ImageShelf


@pytest.fixture
def cloud(
    request: pytest.FixtureRequest,
    hil: HilSession,
    hil_scenario: Scenario,
    hil_way: Way,
    images: ImageShelf,
) -> Iterator[Cloud]:
    """One system controller with its subclouds; an emulated cloud is started anew for each scenario.

    :raises NotApplicable: the lab has no such cloud, or another way was asked for.
    """
    from harness.lab.cloud_bench import CloudBench, clouds_of, narrowed_to_cloud
    from harness.lab.releases import CORRECTED, released
    from harness.lab.running import start_lab
    from harness.plugin.clouds import Cloud
    from harness.plugin.releases import release_of
    from harness.scenarios.prepare import NotApplicable

    if hil_way != (request.config.getoption("hil_way") or hil_way):
        raise NotApplicable(f"--hil-way asks for another way than {hil_way}")
    lab_name = lab_of(request.node, hil)
    lab = hil.inventory.lab(lab_name)
    known = list(clouds_of(lab))
    name: str = getattr(request, "param", known[0] if known else "")
    if name not in known:
        raise NotApplicable(f"the lab {lab.name} has no cloud {name or 'of subclouds with cards'}")
    release = release_of(request.node)
    if release == CORRECTED and lab.controllers[name].emulated is None:
        raise NotApplicable(f"{name} is real, and no real cloud is without known defects")
    own = released(narrowed_to_cloud(hil.inventory, lab_name, name), lab.name, release)
    with (
        start_lab(own, lab.name, leases=hil.leases) as running,
        CloudBench(running, name, hil.history, way=hil_way, allowed=hil.allowed_on_real) as bench,
    ):
        made = Cloud(hil, bench, images)
        made.look()
        yield made
