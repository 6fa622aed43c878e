"""Law: a run decodes as it was trained to, but for what it is told now."""

import dataclasses
import json

import pytest

from keras_transformer.decoding import DecodingOptions
from keras_transformer.decoding.remembered_options import options_of_run, remembered

TRAINED = {
    "beam_size": 12,
    "length_penalty": 0.0,
    "coverage_penalty": 0.2,
    "max_length": "+300",
    "min_length": "1",
    "repetition_penalty": 1.5,
}


def test_what_is_remembered_gives_the_same_options_after_json():
    options = DecodingOptions(**TRAINED)
    kept = json.loads(json.dumps(remembered(options)))
    assert options_of_run({}, kept) == options


def test_what_is_shown_and_drawn_is_not_remembered():
    drawing = DecodingOptions(samples=3, temperature=2.0, seed=5, max_length=9)
    assert options_of_run({}, remembered(drawing)) == DecodingOptions(max_length=9)
    several = DecodingOptions(num_hypotheses=3)
    assert options_of_run({}, remembered(several)) == DecodingOptions()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"beam_size": 3}, {**TRAINED, "beam_size": 3}),
        ({"max_length": 7}, {**TRAINED, "max_length": 7}),
        ({"coverage_penalty": 0.0}, {**TRAINED, "coverage_penalty": 0.0}),
        ({"beam_size": 1}, {**TRAINED, "beam_size": 1, "coverage_penalty": 0.0}),
        (
            {"samples": 2, "seed": 4},
            {
                **{name: TRAINED[name] for name in list(TRAINED)[3:]},
                "samples": 2,
                "seed": 4,
            },
        ),
    ],
)
def test_what_is_given_takes_the_place_of_what_is_remembered(given, expected):
    assert options_of_run(given, TRAINED) == DecodingOptions(**expected)


def test_control_what_is_given_may_still_exclude_what_is_given():
    with pytest.raises(ValueError, match=r"coverage_penalty=0\.2 chooses among hypotheses"):
        options_of_run({"beam_size": 1, "coverage_penalty": 0.2}, TRAINED)


def test_every_option_is_remembered_or_left_out_on_purpose():
    """A new option has to be put on one side."""
    names = {field.name for field in dataclasses.fields(DecodingOptions)}
    of_one_command = {"num_hypotheses", "samples", "temperature", "top_k", "top_p", "seed"}
    kept = remembered(DecodingOptions(**{**TRAINED, "barred": (1,), "protect_all": False}))
    assert names - kept.keys() == of_one_command
