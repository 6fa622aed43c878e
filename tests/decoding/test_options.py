"""Options against plain arithmetic; those that exclude each other are refused by name."""

import dataclasses
import json
import operator
import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keras_transformer.decoding import (
    BeamSearch,
    BlockwiseSearch,
    DecodingOptions,
    GreedySearch,
    Sampling,
)
from keras_transformer.decoding.constraints import Constraints
from keras_transformer.decoding.lengths import parse_length
from keras_transformer.decoding.remembered_options import options_of_run, remembered

SOURCES = [1, 2, 3, 7, 10, 50, 99, 1000, 1024, 100000]


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (80, (0, 80)),
        ("80", (0, 80)),
        ("+50", (1, 50)),
        ("+0", (1, 0)),
        ("1.5x", (1.5, 0)),
        ("2x", (2, 0)),
        ("2x+10", (2, 10)),
        ("0.5x+3", (0.5, 3)),
        ("0x+7", (0, 7)),
        (1, (0, 1)),
    ],
)
def test_a_length_is_a_multiple_of_the_source_length_and_an_offset(length, expected):
    assert parse_length("max_length", length) == expected


@pytest.mark.parametrize(
    "length",
    [
        *("", "x", "2x10", "-3", "0", "0x", "0x+0", "+", "2x+", "2x-1", "x+5", ".5x", "1.x", "1e3"),
        *("80 ", "80\n", "two", -3, 0, 1.5, True, None),
        # These overflow an int32.
        *("+2147483647", 2**31, "2097152x"),
    ],
)
@pytest.mark.parametrize("name", ["max_length", "min_length"])
def test_a_malformed_length_is_refused_by_name(name, length):
    with pytest.raises(ValueError, match=rf"(?s)^`{name}` must .*Received: {name}=.*\.$"):
        DecodingOptions(**{name: length})


@settings(max_examples=30)
@example(times=110, more=0, sources=[50])  # 55.00000000000001 in float64
@given(
    times=st.integers(0, 1000),
    more=st.integers(0, 1000),
    sources=st.lists(st.integers(1, 10**6), min_size=1, max_size=20),
)
def test_lengths_are_those_of_plain_arithmetic(times, more, sources):
    """Factors are hundredths, so that the expected lengths need no rounding."""
    more += 2 * (not times)  # a minimum of one would be no minimum
    options = DecodingOptions(max_length=f"{times // 100}.{times % 100:02}x+{more}")
    expected = [-(-source * times // 100) + more for source in sources]
    assert options.limits(tf.constant(sources)).numpy().tolist() == expected
    options = DecodingOptions(
        min_length=f"{times // 100}.{times % 100:02}x+{more}",
        max_length=f"{times // 100 + 1}x+{more}",
    )
    assert options.minima(tf.constant(sources)).numpy().tolist() == expected


def test_limits_and_minima_of_no_sources_and_in_a_graph():
    options = DecodingOptions(min_length="0.5x", max_length="1.1x+3")
    none = options.limits(tf.zeros([0], tf.int32))
    assert (none.shape, none.dtype) == ((0,), tf.int32)
    in_graph = tf.function(
        lambda sources: (options.limits(sources), options.minima(sources)),
        [tf.TensorSpec([None], tf.int32)],
    )
    limits, minima = in_graph(tf.constant(SOURCES))
    np.testing.assert_array_equal(limits, [-(-source * 11 // 10) + 3 for source in SOURCES])
    np.testing.assert_array_equal(minima, [(source + 1) // 2 for source in SOURCES])


of_beam = operator.attrgetter("beam_size", "length_penalty", "num_hypotheses", "coverage_penalty")
of_samples = operator.attrgetter("temperature", "top_k", "top_p", "seed")


def test_the_default_is_the_paper_s_search_with_a_word_at_least():
    options = DecodingOptions()
    search = options.search()
    assert type(search) is BeamSearch
    assert of_beam(search) == (4, 0.6, 1, 0.0)
    assert search.constraints == Constraints(0, 1.0)
    expected = [source + 50 for source in SOURCES]
    assert options.limits(tf.constant(SOURCES)).numpy().tolist() == expected
    assert options.minima(tf.constant(SOURCES)).numpy().tolist() == [2] * len(SOURCES)
    assert DecodingOptions(min_length=1).minima(tf.constant(SOURCES)) is None


def test_every_option_reaches_its_search():
    rules = {"no_repeat_ngram_size": 3, "repetition_penalty": 1.2}
    search = DecodingOptions(
        beam_size=6, length_penalty=1.0, coverage_penalty=0.2, num_hypotheses=3, **rules
    ).search()
    assert of_beam(search) == (6, 1.0, 3, 0.2)
    assert search.constraints == Constraints(3, 1.2)
    search = DecodingOptions(
        samples=5, temperature=0.7, top_k=9, top_p=0.8, seed=3, num_hypotheses=2, **rules
    ).search()
    assert type(search) is Sampling
    assert (search.beam_size, search.num_hypotheses) == (5, 2)
    assert of_samples(search) == (0.7, 9, 0.8, 3)
    assert search.constraints == Constraints(3, 1.2)
    assert of_samples(DecodingOptions(samples=1).search()) == (1.0, 0, 1.0, 1)
    for kind, options in ((GreedySearch, {"beam_size": 1}), (BlockwiseSearch, {"blockwise": True})):
        search = DecodingOptions(**options, **rules).search()
        assert (type(search), search.constraints) == (kind, Constraints(3, 1.2))
    assert DecodingOptions(beam_size=2, length_penalty=0.0).search().length_penalty == 0.0


# Options, the reason why they exclude each other, and the other options that the message names.
EXCLUDED = [
    *(
        ({"samples": 2, **options}, "samples are drawn without a search")
        for options in ({"beam_size": 4}, {"length_penalty": 0.6}, {"coverage_penalty": 0.1})
    ),
    *(
        (options, "is an option of samples", "samples")
        for options in ({"temperature": 0.5}, {"top_k": 5}, {"top_p": 0.5}, {"seed": np.int64(5)})
    ),
    ({"blockwise": True, "beam_size": 2}, "greedy search"),
    ({"blockwise": True, "samples": 2}, "greedy search"),
    ({"beam_size": 1, "coverage_penalty": 0.2}, "chooses among hypotheses"),
    ({"constrained": True, "no_repeat_ngram_size": 3}, "trees repeat their symbols"),
    ({"min_length": 81, "max_length": 80}, "must not be above"),
    ({"min_length": "1.5x", "max_length": "1x"}, "must not be above"),
    ({"min_length": "+51"}, "must not be above", "max_length=+50"),
    ({"num_hypotheses": 5}, "must lie in", "beam_size=4"),
    ({"num_hypotheses": 2, "beam_size": 1}, "must lie in"),
    ({"num_hypotheses": 3, "samples": 2}, "must lie in"),
]


@pytest.mark.parametrize("case", EXCLUDED, ids=str)
def test_options_that_exclude_each_other_are_refused_by_both_names_and_the_reason(case):
    options, *words = case
    with pytest.raises(ValueError) as error:
        DecodingOptions(**options)
    for text in [*words, *(f"{name}={value}" for name, value in options.items())]:
        assert text in str(error.value)


def test_several_samples_of_the_likeliest_token_are_refused():
    message = r"^top_k=1 draws the same translation 3 times\. Leave `samples` and `top_k` out"
    with pytest.raises(ValueError, match=message):
        DecodingOptions(samples=3, top_k=1)


def test_the_longest_length_is_the_largest_int32():
    longest = 2**31 - 1
    for length in (longest, f"+{longest - 1024}"):
        assert DecodingOptions(max_length=length).limits([1024]).numpy().tolist() == [longest]


def test_the_search_for_all_returns_its_whole_beam_whatever_num_hypotheses_is():
    beam = DecodingOptions(beam_size=5, length_penalty=0.3).search_for_all()
    assert (beam.num_hypotheses, beam.beam_size, beam.length_penalty) == (5, 5, 0.3)
    assert DecodingOptions(num_hypotheses=2).search_for_all().num_hypotheses == 4
    sampling = DecodingOptions(samples=6, num_hypotheses=2, temperature=0.5).search_for_all()
    assert (sampling.num_hypotheses, sampling.beam_size, sampling.temperature) == (6, 6, 0.5)
    assert type(DecodingOptions(beam_size=1).search_for_all()) is GreedySearch


NO_NUMBERS = (float("nan"), float("inf"), None, b"2")
# By class and argument, values that are refused.
OUT_OF_RANGE = {
    BeamSearch: {
        "beam_size": (0, -1, 2.5),
        "length_penalty": (-0.1, *NO_NUMBERS),
        "coverage_penalty": (-0.1, *NO_NUMBERS),
        "num_hypotheses": (0, 2.5, None),
        "length_penalty_form": ("marian", None, []),
    },
    Constraints: {
        "no_repeat_ngram_size": (-1, 1.5),
        "repetition_penalty": (0.0, -1.0, *NO_NUMBERS),
    },
    Sampling: {
        "samples": (0, 1.5),
        "temperature": (0.0, -1.0, *NO_NUMBERS),
        "top_k": (-1, 2.5),
        "top_p": (0.0, 1.1, *NO_NUMBERS),
        "num_hypotheses": (0, None),
    },
    DecodingOptions: {
        "samples": (-1, 1.5),
        # A typing error would take all of a machine's memory.
        "beam_size": (0, 1_001),
        "length_penalty": (-1.0,),
        "coverage_penalty": (-1.0,),
        "no_repeat_ngram_size": (-1,),
        "repetition_penalty": (0.0,),
        # A string would be read as words of one letter.
        "forbidden_words": ("cat", b"cat", None, 3, [None]),
        "forbidden": (["cat"], 3),
        # -1 barred the last id.
        "barred": (None, 5, "a", ["a"], (1, -1)),
        "seed": ("a", 1.5, 2**63, -(2**63) - 1),
    },
}
REFUSED = [
    *((kind, {name: bad}) for kind, of in OUT_OF_RANGE.items() for name in of for bad in of[name]),
    (BeamSearch, {"beam_size": 2, "num_hypotheses": 3}),
    (Sampling, {"samples": 2, "num_hypotheses": 3}),
    (DecodingOptions, {"samples": 1, "temperature": 0.0}),
    (DecodingOptions, {"samples": 1, "top_k": -1}),
    (DecodingOptions, {"samples": 1, "top_p": 1.5}),
]


def test_the_line_of_forbidden_words_that_is_not_utf_8_is_named(tmp_path):
    path = tmp_path / "words"
    path.write_bytes(b"\xef\xbb\xbfcat\r\n\n  dog\nbird")
    assert DecodingOptions(forbidden=str(path)).forbidden_words == ("cat", "dog", "bird")
    path.write_bytes(b"cat\nd\xffg\n")
    with pytest.raises(ValueError, match=r"words, line 2: must be UTF-8\..*iconv\.$"):
        DecodingOptions(forbidden=str(path))


@pytest.mark.parametrize(("kind", "arguments"), REFUSED)
def test_an_argument_out_of_range_is_refused_by_name(kind, arguments):
    [*_, (name, value)] = arguments.items()
    received = re.escape(f"Received: {name}={value}.")
    with pytest.raises(ValueError, match=rf"^`{name}` must .*{received}$"):
        kind(**arguments)


def test_numbers_of_numpy_are_numbers_and_words_of_a_generator_are_read():
    """A sweep by np.arange was refused, and nothing was forbidden by a generator."""
    numbers = {"beam_size": np.int64(3), "length_penalty": np.float32(0.5), "max_length": 80}
    numbers |= {"constrained": np.bool_(True), "num_hypotheses": np.arange(4)[2]}
    words = (word for word in ("a", "b"))
    options = DecodingOptions(**numbers, forbidden_words=words, barred=np.array([3, 4]))
    plain = {name: np.array(number).item() for name, number in numbers.items()}
    assert options == DecodingOptions(**plain, forbidden_words=["a", "b"], barred=[3, 4])
    reread = options_of_run({}, json.loads(json.dumps(remembered(options))))
    assert (reread.beam_size, reread.barred) == (3, (3, 4))
    with pytest.raises(ValueError, match=r"^`beam_size` must be an integer\. .*=\[4\]\.$"):
        DecodingOptions(beam_size=np.array([4]))


@pytest.mark.parametrize(
    "arguments",
    [
        {"min_length": "2x", "max_length": 80},  # for short sources
        {"min_length": 80, "max_length": 80},
        {"samples": 1, "top_k": 1},
        {"beam_size": 1, "length_penalty": 0.6},
    ],
    ids=str,
)
def test_options_that_go_together_are_accepted(arguments):
    options = DecodingOptions(**arguments)
    fields = {name: str(getattr(options, name)) for name in arguments}
    assert fields == {name: str(value) for name, value in arguments.items()}


# Law: a run decodes with the options of its training, except those that the command gives.
TRAINED = {
    "beam_size": 12,
    "length_penalty": 0.0,
    "coverage_penalty": 0.2,
    "max_length": "+300",
    "min_length": "1",
    "repetition_penalty": 1.5,
}
OF_ANY_SEARCH = {name: TRAINED[name] for name in ("max_length", "min_length", "repetition_penalty")}


def test_remembered_options_are_the_same_after_json():
    options = DecodingOptions(**TRAINED)
    saved = json.loads(json.dumps(remembered(options)))
    assert options_of_run({}, saved) == options


def test_samples_and_the_number_of_hypotheses_are_not_remembered():
    drawing = DecodingOptions(samples=3, temperature=2.0, seed=-(2**63), max_length=9)
    assert options_of_run({}, remembered(drawing)) == DecodingOptions(max_length=9)
    several = DecodingOptions(num_hypotheses=3)
    assert options_of_run({}, remembered(several)) == DecodingOptions()


@pytest.mark.parametrize(
    ("of_command", "expected"),
    [
        ({"beam_size": 3}, {**TRAINED, "beam_size": 3}),
        ({"max_length": 7}, {**TRAINED, "max_length": 7}),
        ({"coverage_penalty": 0.0}, {**TRAINED, "coverage_penalty": 0.0}),
        ({"beam_size": 1}, {**TRAINED, "beam_size": 1, "coverage_penalty": 0.0}),
        ({"blockwise": True}, {**OF_ANY_SEARCH, "blockwise": True}),
        ({"samples": 2, "seed": 4}, {**OF_ANY_SEARCH, "samples": 2, "seed": 4}),
    ],
)
def test_options_of_the_command_replace_remembered_ones(of_command, expected):
    assert options_of_run(of_command, TRAINED) == DecodingOptions(**expected)


DRAWING = {"samples": 8, "num_hypotheses": 7, "top_k": 5, "seed": 4}
BEAM = {"beam_size": 4, "length_penalty": 1.0, "num_hypotheses": 3}


@pytest.mark.parametrize(
    ("exported", "of_call", "expected"),
    [
        (DRAWING, {"top_k": 3}, {**DRAWING, "top_k": 3}),
        (DRAWING, {"samples": 1}, {**DRAWING, "samples": 1, "num_hypotheses": 1}),
        (DRAWING, {"samples": 0}, {"num_hypotheses": 4}),
        (DRAWING, {"length_penalty": 1.0}, {"length_penalty": 1.0, "num_hypotheses": 4}),
        (DRAWING, {"beam_form": "staying"}, {"beam_form": "staying", "num_hypotheses": 4}),
        (DRAWING, {"blockwise": True}, {"blockwise": True}),
        (BEAM, {"beam_size": 1}, {**BEAM, "beam_size": 1, "num_hypotheses": 1}),
        (BEAM, {"beam_size": 9}, {**BEAM, "beam_size": 9}),
        (BEAM, {"num_hypotheses": 4}, {**BEAM, "num_hypotheses": 4}),
        (BEAM, {"samples": 2, "seed": 1}, {"samples": 2, "num_hypotheses": 2, "seed": 1}),
        (BEAM, {"blockwise": True}, {"blockwise": True}),
    ],
)
def test_exported_options_give_way_to_those_of_a_call(exported, of_call, expected):
    """An export of two hypotheses refused --beam_size=1, and one of samples --blockwise."""
    facts = dataclasses.asdict(DecodingOptions(**exported))
    facts = {name: value for name, value in facts.items() if value is not None}
    assert options_of_run(of_call, facts) == DecodingOptions(**expected)


def test_blockwise_search_is_remembered_until_a_command_asks_for_another():
    saved = remembered(DecodingOptions(blockwise=True, max_length=9))
    assert options_of_run({}, saved) == DecodingOptions(blockwise=True, max_length=9)
    for search in ({"beam_size": 4}, {"beam_size": 1}, {"samples": 2}):
        assert options_of_run(search, saved) == DecodingOptions(**search, max_length=9)


def test_control_options_of_the_command_may_still_exclude_each_other():
    with pytest.raises(ValueError, match=r"coverage_penalty=0\.2 chooses among hypotheses"):
        options_of_run({"beam_size": 1, "coverage_penalty": 0.2}, TRAINED)


def test_every_option_is_remembered_or_left_out_on_purpose():
    """A new option has to be added to one side."""
    names = {field.name for field in dataclasses.fields(DecodingOptions)}
    languages = {"source_language", "target_language"}
    of_one_command = {"num_hypotheses", "samples", "temperature", "top_k", "top_p", "seed"}
    of_one_command.add("forbidden")  # A file, whose words are remembered instead.
    lists = {"barred": (1,), "forbidden_words": ("cat",)}
    saved = remembered(DecodingOptions(**{**TRAINED, **lists, "protect_all": False}))
    saved |= remembered(DecodingOptions(blockwise=True))
    assert names - saved.keys() - languages == of_one_command
