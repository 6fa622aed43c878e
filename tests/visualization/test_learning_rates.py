"""Learning rates of recipes, read from flag files."""

import pytest

from keras_transformer.flags.recipes import recipe
from keras_transformer.visualization.learning_rates import learning_rates

PAPER = {
    "name": "transformer",
    "d_model": 512,
    "warmup_steps": 400,
    "scale": 1.0,
    "peak": None,
    "total_steps": 10**5,
}
GROUPS = ("optimizer", "model", "training")


def test_the_curve_is_the_paper_s_and_has_its_corner():
    steps, rates = learning_rates({"a": PAPER}).series["a"]
    expected = [512**-0.5 * min(step**-0.5, step * 400**-1.5) for step in steps]
    assert rates == pytest.approx(expected, rel=1e-5)
    assert 400 in steps
    assert (steps[0], steps[-1]) == (1, 4000)
    assert max(rates) == rates[steps.index(400)]


def test_all_recipes_are_measured_at_the_same_steps():
    recipes = {"a": PAPER, "b": {**PAPER, "name": "constant", "peak": 0.1, "warmup_steps": 70}}
    panel = learning_rates(recipes, 500)
    assert panel.series["a"][0] == panel.series["b"][0]
    assert {70, 400, 500} <= set(panel.series["a"][0])
    assert panel.series["b"][1][-1] == pytest.approx(0.1)


def test_a_recipe_is_a_flag_file_with_flags_behind_it():
    base = recipe("base.flags", *GROUPS)
    assert (base["d_model"], base["warmup_steps"], base["schedule"]) == (512, 4000, "transformer")
    changed = recipe("base.flags --warmup_steps=8000 --schedule=cosine", *GROUPS)
    different = {name for name in base if base[name] != changed[name]}
    assert different == {"warmup_steps", "schedule"}
    # The recipes before are as they were.
    assert recipe("base.flags", *GROUPS) == base
    assert recipe("--warmup_steps=7", *GROUPS)["warmup_steps"] == 7


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("none.flags", "neither in the working folder nor one of the package's own"),
        ("base.flags --warmup=3", "base.flags --warmup=3: .*warmup"),
        ("--warmup_steps=0", "--warmup_steps=0: .*positive integer"),
    ],
)
def test_a_wrong_recipe_is_told(text, told):
    with pytest.raises((ValueError, FileNotFoundError), match=told):
        recipe(text, *GROUPS)
