"""The fixture of scenarios about a distributed cloud."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from harness.plugin.scenario import Scenario
from harness.plugin.session import HilSession
from harness.plugin.system_fixtures import chosen, note_settings

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
    from harness.lab.cloud_bench import CloudBench, narrowed_to_cloud
    from harness.lab.releases import released
    from harness.lab.running import start_lab
    from harness.plugin.clouds import Cloud

    lab_name, name, release = chosen(request.node, hil, hil_way, "cloud")
    lab = hil.inventory.lab(lab_name)
    own = released(narrowed_to_cloud(hil.inventory, lab_name, name), lab.name, release)
    with (
        start_lab(own, lab.name, leases=hil.leases) as running,
        CloudBench(running, name, hil.history, way=hil_way, allowed=hil.allowed_on_real) as bench,
    ):
        made = Cloud(hil, bench, images)
        note_settings(request, hil, own, hil_way, cloud=name)
        bench.look()
        yield made
