"""The recipes of the fixtures are there, say what they are, and give the same bytes everywhere."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import ConfigurationError, NotAnImage
from harness.images.damage import DAMAGES
from harness.images.facts import image_facts
from harness.images.payload import read_descriptor, reverse_bits
from harness.images.recipes import build, load_recipes
from harness.images.verify import verify

PATH = Path(__file__).parents[2] / "fixtures" / "images.yaml"
RECIPES = load_recipes(PATH.read_text())

#: What scenarios rely on: name -> CSK signature, Block 0 signature, rules broken.
SCENARIO_IMAGES = {
    "A/csk0": ("valid", "valid", set()),
    "A/csk1": ("valid", "valid", set()),
    "A/csk0-v2": ("valid", "valid", set()),
    "B/csk0": ("valid", "valid", set()),
    "unsigned": ("absent", "absent", set()),
    "csk-foreign": ("invalid", "valid", {"csk-signature"}),
    "tampered-payload": ("valid", "valid", {"payload-sha256", "payload-sha384"}),
    "tampered-signature": ("valid", "invalid", {"b0-signature"}),
    "truncated": ("valid", "valid", {"payload-sha256", "payload-sha384", "truncated"}),
    "bmc-unsigned": ("absent", "absent", set()),
    "bmc-A/csk0": ("valid", "valid", set()),
    "root-key-A": ("absent", "absent", set()),
    "root-key-B": ("absent", "absent", set()),
    "cancel-A-csk0": ("absent", "valid", set()),
    "cancel-A-csk1": ("absent", "valid", set()),
    "cancel-B-csk0": ("absent", "valid", set()),
}


@pytest.mark.parametrize("name", SCENARIO_IMAGES)
def test_image_of_a_scenario_is_what_its_name_says(name):
    verification = verify(build(RECIPES[name]))
    rules = {finding.rule for finding in verification.findings}
    assert (verification.csk.value, verification.block0.value, rules) == SCENARIO_IMAGES[name]


@pytest.mark.parametrize("name", ["truncated-short", "raw-file"])
def test_what_the_tool_does_not_send_is_no_image(name):
    with pytest.raises(NotAnImage):
        verify(build(RECIPES[name]))


@pytest.mark.parametrize("name", DAMAGES)
def test_there_is_an_image_for_every_damage(name):
    recipe = RECIPES[f"damage/{name}"]
    assert recipe.damage == name
    try:
        broken = {finding.rule for finding in verify(build(recipe)).findings}
    except NotAnImage:
        broken = {"not-an-image"}
    assert broken == set(DAMAGES[name].rules)


def test_no_recipe_but_those_of_damages_is_called_like_one():
    assert {name.removeprefix("damage/") for name in RECIPES if name.startswith("damage/")} == set(DAMAGES)


def test_every_user_image_has_its_own_bitstream_id_on_the_user_page():
    ids = [recipe.bitstream_id for recipe in RECIPES.values() if recipe.bitstream_id is not None]
    ids += [recipe.swapped_from for recipe in RECIPES.values() if recipe.swapped_from is not None]
    assert len(ids) == len(set(ids))
    assert all(0 < value < 1 << 60 and not value >> 36 & 1 for value in ids)


@pytest.mark.parametrize(
    "name", ["A/csk0", "A/csk0-v2", "B/csk0", "unsigned", "csk-foreign", "tampered-payload"]
)
def test_recipe_and_bytes_state_the_same(name):
    recipe = RECIPES[name]
    image = build(recipe)
    facts = image_facts(image)
    assert facts.bitstream_id == recipe.bitstream_id
    assert facts.interface_id == recipe.interface_id
    assert facts.csk_id == (recipe.csk or 0)
    assert facts.unsigned == recipe.unsigned
    assert recipe.unsigned or facts.root_entry_hash == recipe.root_entry_hash()
    # a card that loaded it would run it: a tampered payload is another whole one
    loaded = read_descriptor(reverse_bits(image[1024:]))
    assert loaded is not None
    assert loaded.bitstream_id == recipe.bitstream_id


def test_roots_differ_and_certificates_fit_them():
    roots = {name: image_facts(build(RECIPES[f"root-key-{name}"])).programs_root for name in "AB"}
    assert roots["A"] != roots["B"]
    for name in "AB":
        assert image_facts(build(RECIPES[f"{name}/csk0"])).root_entry_hash == roots[name]
        assert image_facts(build(RECIPES[f"cancel-{name}-csk0"])).root_entry_hash == roots[name]


def test_cancellations_name_the_id_of_their_name():
    for name in ("cancel-A-csk0", "cancel-A-csk1", "cancel-B-csk0"):
        assert image_facts(build(RECIPES[name])).cancel_id == int(name[-1])


# -- the same bytes everywhere ----------------------------------------------------------------------

#: SHA-256 of built images. A change here makes every recording and every golden result stale.
DIGESTS = {
    "A/csk0": "ef463ab627ffe2793040d0cd85ccc8591e25bc3054c786a381473691787c1f6a",
    "tampered-payload": "4d7f952280e6b5574b395192c00437805dee4ae1d12efde5eb654a167113fdca",
    "bmc-A/csk0": "558d2549276ecac4ed1659726aa4da509692d8e222e3183f02d96c0b365e14d6",
    "p384/csk0": "36738fc1667931704f6cb92fc5ecb65c7e09aaf486374319a8921ed86870b9f4",
    "root-key-A": "695e88ffb0282bbef18d938a4e4483d51679a6e50ad62e6ead4c0623892b79df",
    "cancel-A-csk0": "4f24896aa5aa89e76121a12723f1676072d868798b678e139f4b4d301e6ae9e4",
    "damage/csk-permission": "21643197788f63453573f957a2b225e5e11a4bfda3ad333dfb8bdc549d38254d",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_bytes_are_those_of_every_other_run_and_machine(name):
    assert hashlib.sha256(build(RECIPES[name])).hexdigest() == DIGESTS[name]


def test_bytes_do_not_depend_on_the_process():
    program = (
        "import hashlib, pathlib, sys\n"
        "from harness.images.recipes import build, load_recipes\n"
        "digest = hashlib.sha256()\n"
        "for recipe in load_recipes(pathlib.Path(sys.argv[1]).read_text()).values():\n"
        "    digest.update(build(recipe))\n"
        "print(digest.hexdigest())\n"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program, str(PATH)],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }
    assert len(runs) == 1


# -- wrong recipe files -----------------------------------------------------------------------------

GOOD = (
    "keys: {A: {}}\nrecipes: {x: {what: an image, root: A, csk: 0, bitstream_id: 1, interface_id: a"
    + "0" * 31
)
BAD = [
    ("recipes: {x: {what: w, bitsream_id: 1}}", "'bitsream_id'", "Did you mean 'bitstream_id'"),
    ("recipes: {x: {bitstream_id: 1}}", "does not say 'what'", ""),
    ("keys: {A: {}}\nrecipes: {x: {what: w, root: B}}", "root of the recipe 'x' is 'B'", "Allowed: A"),
    ("keys: {A: {curve: P-521}}\nrecipes: {}", "curve of the key 'A' is 'P-521'", "P-256, P-384"),
    ("recipes: {x: {what: w, damage: b1-magik}}", "'b1-magik'", "Did you mean 'b1-magic'"),
    ("recipes: {x: {what: w, kind: updat}}", "'updat'", "Did you mean 'update'"),
    ("recipes: {x: {what: w, content_type: FIM}}", "'FIM'", "SR, BMC, PR"),
    ("recipes: {x: {what: w, csk: one}}", "csk of the recipe 'x' is 'one', not a number", ""),
    ("recipes: {x: {what: w, size: true}}", "not a number", ""),
    ("recipes: {x: {what: 7}}", "what of the recipe 'x' is 7, not text", ""),
    ("recipies: {}", "'recipies'", "Did you mean 'recipes'"),
    ("recipes: [x]", "recipes is not a mapping", ""),
    ("recipes: {x: 1}", "The recipe 'x' is not a mapping", ""),
    ("recipes: {x: [", "no YAML", ""),
    ("", "not a mapping", ""),
    ("recipes: {x: {what: w, root: [A]}}", "root of the recipe 'x' is", ""),
]


@pytest.mark.parametrize(("text", "message", "hint"), BAD)
def test_a_wrong_recipe_file_is_told_with_what_is_allowed(text, message, hint):
    with pytest.raises(ConfigurationError) as caught:
        load_recipes(text)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_the_recipe_that_the_wrong_ones_are_variants_of_is_good():
    assert verify(build(load_recipes(GOOD + "}}")["x"])).ok


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{what: w, kind: root-key}", "'x' of kind root-key needs root"),
        ("{what: w, kind: cancellation, root: A}", "needs root and cancel"),
        ("{what: w}", "does not say what its payload is"),
        ("{what: w, kind: raw}", "does not say what its payload is"),
    ],
)
def test_a_recipe_that_lacks_something_is_named_when_it_is_built(entry, words):
    recipes = load_recipes(f"keys: {{A: {{}}}}\nrecipes: {{x: {entry}}}")
    with pytest.raises(ConfigurationError, match=words):
        build(recipes["x"])
