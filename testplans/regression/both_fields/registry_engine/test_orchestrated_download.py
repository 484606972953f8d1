"""The control plane downloads the tool image while cards are flashed and a certificate is installed.

The second field report within the first one's. The downloads go through a Docker engine.
What is expected: fact sheet of StarlingX, sections 5.5 and 7.2 to 7.3.
"""

import pytest

from harness.registry.images import ImageRecipe, sized_layers
from harness.scenarios.conductor import Conductor

pytestmark = [pytest.mark.hil_lab("emulated"), pytest.mark.hil_release("corrected")]

#: The image with the tools that write to cards, as hosts have it from the local registry (section 3.2).
TOOLS = "docker.io/starlingx/n3000-opae"
#: What is downloaded with it.
OTHERS = ["quay.io/jetstack/cert-manager-controller", "quay.io/jetstack/cert-manager-webhook"]
LOST = pytest.mark.hil_expects(
    outcome="FAILED", verdicts={"sysinv-download": "FALSE_SUCCESS", "log:sysinv": "FALSE_SUCCESS"}
)


@pytest.fixture
def applications(request):
    """The images of an application with the tool image, which no other scenario shares a layer with."""
    seed = request.node.nodeid
    return {name: ImageRecipe(sized_layers(2, 1 << 16, seed=f"{seed} {name}")) for name in (TOOLS, *OTHERS)}


@pytest.mark.parametrize("form", ["remedied", pytest.param("historical", marks=LOST)])
def test_a_certificate_is_installed_meanwhile(cloud, download, registry, applications, form):
    """The push is said to have succeeded, or really has; the cards are none the worse for either."""
    conductor = Conductor(lambda: registry.lab.rotate(("registry", "tokens")), defers=False)
    cloud.controller.apply(cloud.controller.upload("A/csk0"))
    cloud.audit()
    cloud.create_strategy(max_parallel=4)
    with cloud.applied_until("subcloud1/card0", "programming"):
        download(
            "n3000-tools",
            applications,
            form=form,
            hold=[TOOLS],
            meanwhile=("install-certificate", conductor.install_certificate),
        )
    assert cloud.wait_for_strategy().state == "complete"
    cloud.audit()
