"""Puts off the import of a module that others import at their start and hardly ever use."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _Late(ModuleType):
    # importlib.util.LazyLoader is no help: "import x" asks for x.__spec__, at which it loads x.
    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def import_when_used(name: str) -> None:
    """Let ``import name`` give a module that is loaded only when something in it is asked for.

    Nothing happens where it is imported already, or is not installed.
    """
    if name not in sys.modules and (spec := find_spec(name)) is not None:
        sys.modules[name] = late = _Late(name)
        # What others ask of every module there is: whether it is installed, and where.
        late.__spec__, late.__file__ = spec, spec.origin
