"""Lines to batches or to sentences, and back; and for each line in, the output of a SavedModel:
what its signature gives for the line alone.
"""

import functools
import io
import itertools
import json
import pathlib
import re
import shutil
import types

import numpy as np
import pytest
import tensorflow as tf
from drawn_models import random_model
from hypothesis import given, settings
from hypothesis import strategies as st
from small_model import eagerly
from string_model import StringModel, StringReader
from written import write_png

from keras_transformer.decoding import DecodingOptions
from keras_transformer.inference.generator import Generator, in_words, rounded_perplexity
from keras_transformer.inference.line_batches import checked_lengths, join, listed, split
from keras_transformer.inference.live import Live
from keras_transformer.inference.loading import load_trained
from keras_transformer.inference.model_graphs import AttentionGraphs
from keras_transformer.inference.predictor import Predictor
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


TEXTS = ["a", "", "ccc dd", "漢", *map(str, range(150))]
SIZE = (2, 3, 1)


class Eyes(tf.Module):
    """Tells bright from dark pictures of one size, with the outputs of our picture classifiers."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="png")])
    def classify_png(self, png):
        def light(file):
            pixels = tf.io.decode_png(file, 1)
            tf.debugging.assert_equal(tf.shape(pixels), SIZE, "a picture must be 2 x 3 x 1.")
            return tf.reduce_mean(tf.cast(pixels, tf.float32)) / 255

        lights = tf.map_fn(light, png, fn_output_signature=tf.float32)
        return {
            "class": tf.where(lights > 0.5, "bright", "dark"),
            "classes": tf.broadcast_to(tf.constant(["bright", "dark"]), [tf.size(png), 2]),
            "probabilities": tf.stack([lights, 1 - lights], axis=1),
        }

    @tf.function(input_signature=[tf.TensorSpec([None, *SIZE], name="picture")])
    def serving_default(self, picture):
        return {"class": tf.fill(tf.shape(picture)[:1], "asked for pixels")}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a SavedModel by each name."""
    folder = tmp_path_factory.mktemp("models")
    StringModel("!").write(folder / "upper" / "1")
    StringReader().write(folder / "reader" / "1")
    eyes = Eyes()
    signatures = {"serving_default": eyes.serving_default, "classify_png": eyes.classify_png}
    tf.saved_model.save(eyes, str(folder / "eyes" / "1"), signatures=signatures)
    return folder


@pytest.fixture
def pictures(tmp_path):
    """Paths of a bright, a dark and a too large picture, of a text, and of no file."""
    for name, value, size in (("bright", 204, SIZE), ("dark", 51, SIZE), ("large", 0, (3, 3, 1))):
        write_png(tmp_path / f"{name}.png", np.full(size, value, np.uint8))
    (tmp_path / "text.png").write_text("no picture")
    names = ("bright", "dark", "large", "text", "none")
    return {name: str(tmp_path / f"{name}.png") for name in names}


def recorded_calls(predictor):
    """A list to which each further call of the predictor's signature adds its inputs' lengths."""
    calls = []
    function = predictor._function

    def record(**inputs):
        calls.append([len(text) for text in next(iter(inputs.values()))])
        return function(**inputs)

    predictor._function = record
    return calls


def test_each_line_gives_a_line_and_none_is_padded_to_a_long_one(models):
    predictor = Predictor.load(models / "upper")
    calls = recorded_calls(predictor)
    texts = [*TEXTS[:9], "a b" * 2000, *TEXTS[9:], "c" * 9000]
    assert predictor.lines(texts) == [f"{text.upper()}!" for text in texts]
    assert [lengths for lengths in calls if max(lengths) > 16] == [[9000], [6000]]
    assert sum(map(len, calls)) == len(texts)
    assert Predictor.load(models / "upper" / "1").lines([]) == []
    # As from a `Translator`.
    assert predictor.lines(["\udcff"]) == ["?!"]


def test_objects_have_the_input_and_every_output(models):
    objects = list(Predictor.load(models / "upper", "raw").objects(TEXTS))
    expected = [{"text": text, "text_bytes": text, "length": len(text.encode())} for text in TEXTS]
    assert objects == expected


def test_no_text_is_padded_for_another(models):
    predictor = Predictor.load(models / "upper", "width")
    expected = [["a", "b", "c"], [], ["d"]]
    assert [row["characters"] for row in predictor.objects(["abc", "", "d"])] == expected


def test_numbers_have_the_digits_of_a_float32(models):
    [guess] = Predictor.load(models / "reader", "fill_mask").objects(["a <mask>"])
    assert guess == {
        "text": "a <mask>",
        "filled": "a dog",
        "pieces": [["dog", "cat"]],
        "probabilities": [[0.75, 0.25]],
    }
    [embedding] = Predictor.load(models / "reader", "embed").objects(["ab"])
    assert embedding["vector"] == pytest.approx([np.cos(0.1), np.sin(0.1)], abs=1e-7)
    assert len(json.dumps(embedding["vector"][0])) <= len("0.12345678")


def test_a_line_of_pictures_names_a_file(models, pictures):
    predictor = Predictor.load(models / "eyes")
    names = [pictures["dark"], pictures["bright"]]
    calls = recorded_calls(predictor)
    assert predictor.lines(names * 50) == ["dark", "bright"] * 50
    assert max(map(len, calls)) <= 64
    first, _ = predictor.objects(names)
    assert first == {
        "png": pictures["dark"],
        "class": "dark",
        "classes": ["bright", "dark"],
        "probabilities": [0.2, 0.8],
    }


@pytest.mark.parametrize(
    ("wrong", "message"),
    [("large", "a picture must be 2 x 3 x 1"), ("text", "Unknown image file format")],
)
def test_the_picture_that_is_refused_is_named(models, pictures, wrong, message):
    predictor = Predictor.load(models / "eyes")
    with pytest.raises(ValueError, match=re.escape(pictures[wrong])) as caught:
        predictor.lines([pictures["dark"], pictures[wrong], pictures["bright"]])
    assert str(caught.value).startswith(f"{pictures[wrong]!r}: {message}")
    with pytest.raises(FileNotFoundError, match=r"none\.png"):
        predictor.lines([pictures["none"]])
    with pytest.raises(ValueError, match="every line must name a PNG or JPEG file"):
        predictor.lines([pictures["dark"], ""])


@pytest.mark.parametrize(
    ("name", "signature", "message"),
    [
        ("upper", "none", r"that takes one string: .*raw, sample.*width\. Received: 'none'"),
        ("upper", "score", r"must be one of .* Received: 'score'"),
        ("eyes", "serving_default", r"takes one string: classify_png\. Received"),
    ],
)
def test_a_signature_that_takes_something_else_is_refused(models, name, signature, message):
    with pytest.raises(ValueError, match=message):
        Predictor.load(models / name, signature)


def test_an_output_that_is_no_line_needs_json(models):
    with pytest.raises(ValueError, match=r"^embed gives vector, .* Add --json\.$"):
        Predictor.load(models / "reader", "embed").lines(["a"])


def test_a_text_without_a_mask_is_refused_where_masks_are_guessed(models):
    filling = Predictor.load(models / "reader")
    assert filling.lines(["a <mask>"]) == ["a dog"]
    for ask in (filling.lines, lambda texts: list(filling.objects(texts))):
        with pytest.raises(ValueError, match=r"must have a mask, .* Received: text 2, 'a cat'"):
            ask(["a <mask>", "a cat"])
    assert list(Predictor.load(models / "reader", "embed").objects(["a cat"]))


def test_vectors_of_no_texts_are_refused(models):
    reader = TextReader.load(models / "reader")
    for ask in (lambda: reader.vectors([]), lambda: reader.search(["a cat"], [], 1)):
        with pytest.raises(ValueError, match=r"^`texts` must have a text\. Received: none\.$"):
            ask()


def test_the_mask_is_that_of_the_model(models, tmp_path):
    """The mask of another vocabulary is plain text, for which nothing is guessed."""
    shutil.copytree(models / "reader" / "1", tmp_path / "1")
    (tmp_path / "1" / "model.json").write_text('{"mask": "[MASK]"}')
    filling = Predictor.load(tmp_path)
    # This reader's graph hides words by <mask>, so [MASK] is accepted and stays.
    assert filling.lines(["a [MASK]"]) == ["a [MASK]"]
    reader = TextReader.load(tmp_path)
    for ask in (filling.lines, reader.filled, reader.guesses):
        message = r"must have a mask, \[MASK\], in .*text 1, 'a <mask>'"
        with pytest.raises(ValueError, match=message):
            ask(["a <mask>"])


def test_a_folder_without_a_saved_model_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no trained model: .* Name a folder that"):
        Predictor.load(tmp_path)
    (tmp_path / "model.json").write_text("{}")
    with pytest.raises(ValueError, match=r"is no SavedModel\. Export the run: "):
        Predictor.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no model at"):
        Predictor.load(tmp_path / "nowhere")


def test_the_command_writes_what_the_predictor_gives(models, fresh_shell):
    def printed(*arguments, stdin=b"a\nbb\n"):
        answer = fresh_shell("predict", f"--model={models}/upper", *arguments, stdin=stdin)
        assert (answer.returncode, answer.stderr) == (0, b"")
        return answer.stdout.decode()

    assert printed() == printed("--stream") == "A!\nBB!\n"
    assert list(map(json.loads, io.StringIO(printed("--json", "--signature=raw")))) == [
        {"text": "a", "text_bytes": "a", "length": 1},
        {"text": "bb", "text_bytes": "bb", "length": 2},
    ]
    answer = fresh_shell("predict", f"--model={models}/upper", "--stream", "--output=x")
    assert answer.returncode == 1
    assert answer.stderr.startswith(b"error: --stream answers lines of standard input")
    answer = fresh_shell("predict", stdin=b"a\n")
    assert answer.stderr.startswith(b"error: --model is missing")
