"""What disturbs a registry at a fault point, by name, each with its undo."""

from harness.faults.registry_actions.catalogue import ACTIONS, registry_action
from harness.faults.registry_actions.protocol import RegistryAction

__all__ = ["ACTIONS", "RegistryAction", "registry_action"]
