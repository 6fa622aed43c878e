"""Lines to batches or to sentences, and back."""

import functools
import itertools
import json
import pathlib
import types

import numpy as np
import pytest
import tensorflow as tf
from drawn_models import random_model
from eager import eagerly
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.decoding import DecodingOptions
from keras_transformer.inference.generator import Generator, in_words, rounded_perplexity
from keras_transformer.inference.line_batches import checked_lengths, join, listed, split
from keras_transformer.inference.live import Live
from keras_transformer.inference.loading import load_trained
from keras_transformer.inference.model_graphs import AttentionGraphs
from keras_transformer.inference.text_reader import TextReader
from keras_transformer.inference.translator import Translator
from keras_transformer.layers.attention_variants.linear_cost import LinearHeads
from keras_transformer.models import Hyperparameters
from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.model_path import ModelPath
from keras_transformer.tasks.translation.module import TranslationModule


def letters(lines):
    return [len(line) for line in lines]


def translator_of(**functions):
    """A `Translator` of a model with these functions, whose tokens are letters."""
    translator = Translator.__new__(Translator)
    translator._model = types.SimpleNamespace(lengths=letters, target_lengths=letters, **functions)
    translator.description = {}
    return translator


def test_pairs_are_batched_by_their_longer_side():
    translator = translator_of()
    batches = []

    def ask(lines, targets):
        batches.append(targets)
        return lines

    assert translator._in_batches(ask, (10,), [*"abcd"], ["a", "a", "a" * 10, "a"]) == [*"abcd"]
    assert batches == [["a" * 10], ["a"] * 3]


def test_a_long_line_is_called_by_its_name():
    with pytest.raises(ValueError, match=r"^line 2 has 1,025 tokens.*--split_sentences"):
        checked_lengths(letters, ["a", "a" * 1025])
    with pytest.raises(ValueError, match=r"^target 1 .* begins 'a{40}'\. Shorten it\.$"):
        checked_lengths(letters, ["a" * 1025], "target {}", "Shorten it.")
    assert checked_lengths(letters, ["a" * 1024]) == [1024]
    # A single line has no number: the caller that streams knows it.
    with pytest.raises(ValueError, match=r"^the line has 1,025 tokens"):
        checked_lengths(letters, ["a" * 1025])


@pytest.mark.parametrize("lines", ["Turn off", None, 1, ["a", None], [b"a"], [["a"]]])
def test_lines_are_a_list_of_strings(lines):
    """From a string, each letter was translated as a line."""
    translator = translator_of(translate=list, translate_in_detail=None)
    generator = Generator({}, letters, 1024)
    for ask in (
        listed,
        translator.translate,
        functools.partial(translator.translate, split_sentences=True),
        translator.translate_in_detail,
        generator.generate,
        generator.perplexities,
        TextReader(types.SimpleNamespace(facts={})).guesses,
        TextReader({"tag": None}).tags,
    ):
        with pytest.raises(ValueError, match=r"must be a list of strings, .* Received: "):
            ask(lines)
    assert listed(iter(["a", "b"])) == listed(np.array(["a", "b"])) == ["a", "b"]


def test_sizes_of_batches_are_whole_numbers():
    translator = translator_of(translate=list)
    assert translator.translate(["off"]) == ["off"]
    for name, size in itertools.product(("batches_at_once", "batch_tokens"), (0, -5, "5", 5.5)):
        message = rf"^`{name}` must be an integer, at least 1\. .*{name}={size}\.$"
        with pytest.raises(ValueError, match=message):
            translator.translate(["off"], **{name: size})


def test_a_long_prefix_is_called_a_prefix():
    translator = translator_of(translate_in_detail=None, score=None)
    with pytest.raises(ValueError, match=r"^of the prefixes, line 2 has 1,025 tokens"):
        translator.translate(["a", "b"], ["", "a" * 1025])
    for lines, prefixes in ((["a", "b"], ["", "a" * 1025]), (["a", "a" * 1025], ["", ""])):
        with pytest.raises(ValueError, match=r"line 8 has 1,025 tokens"):
            translator.translate(lines, prefixes, numbers=[7, 8])
    # A control.
    with pytest.raises(ValueError, match=r"^of the targets, line 2 has 1,025 tokens"):
        translator.score(["a", "b"], ["", "a" * 1025])


def test_a_perplexity_beyond_the_range_of_floats_is_none():
    assert rounded_perplexity(1.0) == 2.718
    assert rounded_perplexity(1420.0) is None
    assert (in_words(2.718), in_words(None)) == ("2.718", "infinite")


@pytest.mark.parametrize(
    ("language", "line", "sentences"),
    [
        (
            "en",
            "Dr. Smith left. He said: hello! It cost $3.50 today.",
            ["Dr. Smith left.", "He said: hello!", "It cost $3.50 today."],
        ),
        ("de", "Das ist z.B. gut. Am 3. Mai kam er.", ["Das ist z.B. gut.", "Am 3. Mai kam er."]),
        ("words", "One. Two.", ["One.", "Two."]),
        ("en", "no end", ["no end"]),
    ],
)
def test_a_line_is_cut_where_a_sentence_ends_and_nowhere_else(language, line, sentences):
    assert split([line], language) == (sentences, [len(sentences)])


def test_a_span_is_neither_cut_nor_lost_between_sentences():
    """A placeholder was once split between two sentences."""
    parts = []
    translator = translator_of(translate=lambda lines: parts.extend(lines) or lines, has_piece=bool)
    translator.description = {"protected": {"protect": ["urls", "placeholders"]}}
    spans = ["{n, plural, one {One. Two?} other {#}}", "http://a.b/?Q=1", "⟦z. B. So⟧", "it.\tNow"]
    for span in (*spans, "⟪ term⟹ z. B. So⟫"):
        translator.translate([f"See {span}. Go."], split_sentences=True)
        assert parts == [f"See {span}.", "Go."]
        parts.clear()


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"]), max_size=60), max_size=6))
def test_no_character_but_white_space_is_lost(lines):
    sentences, counts = split(lines, "en")
    joined = join(sentences, counts)
    assert ["".join(line.split()) for line in joined] == ["".join(line.split()) for line in lines]


def test_a_tag_before_a_line_stands_before_each_of_its_sentences():
    lines = ["<2de> One. Two.", " <2fr>  Three.", "<2de>", "<no> One. Two.", "One. <2de> Two."]
    sentences, counts = split(lines, "en", {"<2de>", "<2fr>"}.__contains__)
    assert sentences == [
        *("<2de> One.", "<2de> Two.", "<2fr> Three.", "<2de>"),
        *("<no> One.", "Two.", "One.", "<2de> Two."),
    ]
    assert counts == [2, 1, 1, 2, 2]
    # A control: to a model without tags it is a word.
    assert split(lines[:1], "en") == (["<2de> One.", "Two."], [2])


# Which graphs of a model ask for its attention.
SOURCE = np.array([[5, 9, 4, 17, 3], [11, 7, 3, 0, 0]])


def test_a_search_asks_for_no_attention_of_the_encoder(monkeypatch):
    """A linear attention would take n^2 steps for it."""
    graphs = AttentionGraphs(random_model(attention="linear"))
    with eagerly():
        memory = graphs.encode(tf.constant(SOURCE))["memory"]
        read, weights = graphs.model.encode_with_attention(SOURCE)
        expected = graphs.model.cache(SOURCE, read)["memory"]

        def refuse(*_):
            raise AssertionError("the weights were asked for")

        monkeypatch.setattr(LinearHeads, "with_weights", refuse)
        again = graphs.encode(tf.constant(SOURCE))["memory"]
        # A control: the graph for attention computes the weights.
        with pytest.raises(AssertionError):
            graphs.attention(tf.constant(SOURCE), tf.constant(SOURCE))
    assert weights["encoder"].shape == (2, 1, 2, 5, 5)
    states = map(tf.nest.flatten, (memory, again, expected))
    for before, after, reference in zip(*states, strict=True):
        np.testing.assert_array_equal(before, after)
        np.testing.assert_allclose(before, reference, rtol=1e-4, atol=1e-5)


# Whatever reads a run refuses a damaged `model.json`, or one of another version, in a line.
OF_TEXT = Hyperparameters(9, num_layers=1, d_model=4, d_ff=4, num_heads=2).as_dict()
WITHOUT_SIZES = "RUN/model.json must have hyperparameters, the sizes"


@pytest.mark.parametrize(
    ("task", "reader"),
    [
        ("translation", lambda path: load_trained(RunFolder(path))),
        ("language_modelling", Generator.load),
    ],
)
@pytest.mark.parametrize(
    ("description", "message"),
    [
        (
            {"hyperparameters": {**OF_TEXT, "gates": 3}},
            "RUN/model.json: the model was written by another version: this one does not know the "
            "hyperparameter gates. Use the version that wrote it, or train again.",
        ),
        # The control: without it the weights are looked for.
        ({"hyperparameters": OF_TEXT}, "RUN holds no checkpoint. Train, or name its run."),
        ({}, WITHOUT_SIZES),
        (
            {"hyperparameters": [1]},
            "`hyperparameters` of RUN/model.json must be an object.",
        ),
    ],
)
def test_a_run_of_other_sizes_or_none_is_refused(tmp_path, task, reader, description, message):
    (tmp_path / "model.json").write_text(json.dumps({"task": task, **description}))
    with pytest.raises((ValueError, FileNotFoundError)) as error:
        reader(tmp_path)
    assert str(error.value).replace(str(tmp_path), "RUN").startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("content", "kind"), [([1], "a list"), ("x", "x"), (None, "null")])
def test_a_model_json_that_is_no_object_is_refused(tmp_path, content, kind):
    (tmp_path / "model.json").write_text(json.dumps(content))
    for reader in (ModelPath(tmp_path, tmp_path).describe, RunFolder(tmp_path).read_description):
        with pytest.raises(ValueError, match=rf"must hold a JSON object\. Received: {kind}\."):
            reader()


# One graph translates by every beam size and length penalty, as release 0.5 did by its own.
FIXTURE = pathlib.Path(__file__).parents[1] / "fixtures" / "release_0_5"
OUTPUTS = json.loads((FIXTURE / "outputs.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def module():
    """The run of release 0.5, whose translations were recorded then."""
    return TranslationModule(*load_trained(RunFolder(FIXTURE / "run")))


def test_one_graph_translates_by_every_beam_and_penalty(module):
    sweep = Live(module, gives_attention=True).sweep
    text = np.array(["", *OUTPUTS["sources"]], dtype=object)

    def swept(beam_size, *alphas):
        texts = sweep(text, np.array([beam_size], np.int32), np.array(alphas, np.float32))
        return [[text.decode() for text in column] for column in texts.numpy().T]

    without, papers, steep = swept(4, 0.0, 0.6, 8.0)
    assert papers == ["", *OUTPUTS["beam_4"]]
    assert len({*map(tuple, (without, papers, steep))}) > 1
    assert sum(map(len, without)) < sum(map(len, steep))
    [greedy] = swept(1, 8.0)
    assert greedy == ["", *OUTPUTS["greedy"]]
    assert sweep.experimental_get_tracing_count() == 1


def test_penalties_are_tried_with_the_beam_of_the_options():
    """The command `tune` used the paper's beam for a Marian model, which searches by another."""
    trained = load_trained(RunFolder(FIXTURE / "run"))

    def live(**more):
        options = DecodingOptions(beam_size=3, max_length="9", **more)
        return Live(TranslationModule(*trained, options), gives_attention=True)

    lines = OUTPUTS["sources"]
    by_form = {}
    for form in ("staying", "leaving"):
        by_form[form] = live(beam_form=form).translate_with_penalties(3, [1.0], lines)
        with eagerly():
            expected = live(beam_form=form, length_penalty=1.0).translate(lines)
        assert by_form[form] == [[text] for text in expected]
    assert by_form["staying"] != by_form["leaving"]


def test_a_translator_gives_a_list_for_each_line(module, monkeypatch):
    """In any order and batches; a stub in place of the graph writes its arguments as text."""

    def spelled(text, beam_size, length_penalties):
        lines = map(bytes.decode, text)
        rows = [
            [f"{line}|{beam_size[0]}|{alpha:g}" for alpha in length_penalties] for line in lines
        ]
        return tf.constant(rows)

    translator = Translator(module)
    monkeypatch.setattr(translator._model, "sweep", spelled)
    reported = []
    lines = ["a b c d e f", "a", "b c"]
    translations = translator.translate_with_penalties(
        lines, 4, [0.0, 0.5], batch_tokens=3, report=reported.append
    )
    assert translations == [[f"{line}|4|0", f"{line}|4|0.5"] for line in lines]
    assert sum(reported) == 3
    assert translator.translate_with_penalties(["a", ""], 4, []) == [[], []]
    for size, penalty, named in ((0, 0.6, "beam_size"), (4, -1.0, "length_penalty")):
        with pytest.raises(ValueError, match=rf"^`{named}` must be "):
            translator.translate_with_penalties(["a"], size, [0.5, penalty])
