"""The images that scenarios push, by name: what each is made of, differently for each scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.registry.images import ImageRecipe, IndexRecipe, LayerRecipe, sized_layers

_MIB = 1 << 20
Recipe = ImageRecipe | IndexRecipe


def _small(seed: str) -> Recipe:
    return ImageRecipe(sized_layers(4, _MIB, seed=seed))


def _tiny(seed: str) -> Recipe:
    return ImageRecipe(sized_layers(1, 1024, seed=seed))


def _shared(seed: str) -> Recipe:
    first, second, *_ = sized_layers(4, _MIB, seed=seed)
    return ImageRecipe((first, second, LayerRecipe(_MIB, f"{seed}-own")), label="shared")


def _index(seed: str) -> Recipe:
    children = (
        ImageRecipe(sized_layers(2, _MIB // 4, seed=f"{seed}-{each}"), architecture=each)
        for each in ("amd64", "arm64")
    )
    return IndexRecipe(tuple(children))


#: Name -> recipe for a seed. ``small`` is what the pushes of the fact sheet of the registry had (section
#: 3): four layers of 1 MiB. ``shared`` has two of its layers.
RECIPES: Mapping[str, Callable[[str], Recipe]] = {
    "tiny": _tiny,
    "small": _small,
    "shared": _shared,
    "index": _index,
}
