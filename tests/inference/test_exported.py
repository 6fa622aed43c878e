"""A SavedModel called from Python, one that release 0.5 exported: its outputs and refusals."""

import functools
import json
import pathlib
import types

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text
from shared import unpack
from small_model import eagerly

from keras_transformer.inference import exported as product
from keras_transformer.inference.exported import request
from keras_transformer.inference.functions import SavedFunctions
from keras_transformer.inference.live import Live
from keras_transformer.inference.translator import Translator, link_words
from keras_transformer.saved_models import session
from keras_transformer.tasks.parsing.module import ParsingModule

FIXTURE = pathlib.Path(__file__).parents[1] / "fixtures" / "release_0_5"
OUTPUTS = json.loads((FIXTURE / "outputs.json").read_text(encoding="utf-8"))
SOURCES = OUTPUTS["sources"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A version that release 0.5 exported, in a folder of versions."""
    version = tmp_path_factory.mktemp("release_0_5") / "1"
    unpack(FIXTURE / "saved_model.tar.gz", version)
    return version.parent


@pytest.fixture(scope="module", autouse=True)
def loaded_once():
    """Load each signature of a folder once for all translators."""
    load = SavedFunctions._load
    signatures = {}

    def load_once(self, signature):
        key = self.name, signature
        if key not in signatures:
            signatures[key] = load(self, signature)
        return signatures[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SavedFunctions, "_load", load_once)
        patch.setattr(product, "reload", functools.cache(session.reload))
        yield


@pytest.fixture(scope="module")
def exported(folder):
    return Translator.load(folder)


def live(**options):
    """The run that was exported, which translates without a graph."""
    return Translator.load(FIXTURE / "run", **options)


@pytest.fixture
def loaded(folder):
    """A function from options to the `Translator`."""
    return functools.partial(Translator.load, folder)


def test_release_0_5_translates_and_scores_as_it_did(exported, loaded):
    assert exported.translate(SOURCES) == OUTPUTS["beam_4"]
    assert loaded(beam_size=1).translate(SOURCES) == OUTPUTS["greedy"]
    scores = exported.score(SOURCES, OUTPUTS["greedy"])
    np.testing.assert_allclose(scores, OUTPUTS["reference_scores"], rtol=1e-4)


def test_penalties_are_options_of_one_request_each(loaded):
    penalties = [0.0, 5.0]
    lines = SOURCES[:8]
    translations = loaded().translate_with_penalties(lines, 4, penalties)
    columns = [loaded(beam_size=4, length_penalty=alpha).translate(lines) for alpha in penalties]
    assert translations == [list(row) for row in zip(*columns, strict=True)]
    assert columns[0] != columns[1]
    of_numpy = loaded().translate_with_penalties(lines, np.int64(4), np.float32(penalties))
    assert of_numpy == translations
    with pytest.raises(ValueError, match="leave out `samples`"):
        loaded(samples=1).translate_with_penalties(lines, 4, penalties)
    # Its graph would clamp them.
    for name, size, alpha in (("beam_size", 0, 0.6), ("length_penalty", 2, float("nan"))):
        with pytest.raises(ValueError, match=rf"^`{name}` must be "):
            loaded().translate_with_penalties(lines, size, [alpha])


def test_hypotheses_and_scores_are_an_option(loaded):
    details = loaded(num_hypotheses=2, beam_size=None).translate_in_detail(SOURCES)
    bests, seconds = zip(*details, strict=True)
    assert [best.text for best in bests] == OUTPUTS["beam_4"]
    assert [second.text for second in seconds] == OUTPUTS["second"] != OUTPUTS["beam_4"]
    np.testing.assert_allclose([best.score for best in bests], OUTPUTS["scores"], rtol=1e-4)
    assert list(bests[0].as_dict()) == ["translation", "score"]


def test_fewer_hypotheses_than_asked_for_are_not_made_up(folder, monkeypatch):
    translator = Translator.load(folder, num_hypotheses=2)
    scores = np.array([[-1.5, np.finfo(np.float32).min]], np.float32)
    outputs = {"translations": np.array([[b"a", b""]], object), "scores": scores}
    monkeypatch.setattr(translator._model, "_run", lambda *_, **__: outputs)
    [[only]] = translator.translate_in_detail(["a"])
    assert only == ("a", -1.5, None, None)


def test_options_of_a_search_mean_what_they_mean_in_the_run(loaded):
    translations = []
    for options in ({"max_length": "4"}, {"length_penalty": 5.0}):
        translations.append(loaded(**options).translate(SOURCES))
        with eagerly():
            assert translations[-1] == live(**options).translate(SOURCES), options
    assert len({tuple(OUTPUTS["beam_4"]), *map(tuple, translations)}) == 3
    assert max(len(line.split()) for line in translations[0]) <= 3


def test_one_sample_of_a_temperature_and_a_seed(loaded, folder):
    sample = product.reload(folder / "1").signatures["sample"]

    def expected(seed):
        options = {"temperature": tf.constant([2.0]), "seed": tf.constant([seed], tf.int64)}
        texts = sample(text=tf.constant(SOURCES), **options)["translation"]
        return [text.decode() for text in texts.numpy()]

    samples = loaded(samples=1, temperature=2.0, seed=3).translate(SOURCES)
    assert samples == expected(3)
    assert samples != expected(4)
    assert loaded(samples=1, temperature=2.0, seed=3).translate(SOURCES[5:7]) == samples[5:7]


@pytest.mark.parametrize("options", [{}, {"beam_size": 3, "max_length": 6}])
def test_a_line_gives_what_it_gives_alone(loaded, options):
    translator = loaded(**options)
    together = translator.translate(SOURCES)
    assert together == [translator.translate([line])[0] for line in SOURCES]
    assert translator.translate(SOURCES, batch_tokens=9, batches_at_once=2) == together
    assert translator.translate(["", " ", SOURCES[0]]) == ["", "", together[0]]


def test_pieces_and_prefixes_are_those_of_the_run(exported):
    lines = SOURCES[:4]
    prefixes = ["", "e", "", "c"]
    details = exported.translate_in_detail(lines, prefixes)
    with eagerly():
        expected = live().translate_in_detail(lines, prefixes)
    for [best, *_], [reference, *_], prefix in zip(details, expected, prefixes, strict=True):
        assert best.text.startswith(prefix)
        assert (best.text, best.pieces) == (reference.text, reference.pieces)
        np.testing.assert_allclose(best.log_probabilities, reference.log_probabilities, rtol=1e-3)
    assert exported.translate(lines, prefixes) == [best.text for [best, *_] in details]


def test_words_are_aligned_by_the_signature_as_by_the_module(exported):
    line = SOURCES[0]
    translation = OUTPUTS["beam_4"][0]
    attention = exported.attention(line, translation)
    layer = max(attention["cross"].shape[0] - 2, 0)
    links = link_words(
        attention["source_pieces"], attention["target_pieces"], attention["cross"][layer].mean(0)
    )
    assert exported.align([line], [translation]) == [links]
    assert len(links) == len(translation.split())


def test_tokens_are_counted_as_the_run_counts_them(exported):
    lines = [*SOURCES, "", "  a  b ", "Größe ﬁ ½ 日本 \u200b🙂", "x" * 50, "half a \ud83d pair"]
    assert exported._model.lengths(lines) == live()._model.lengths(lines)
    with pytest.raises(ValueError, match="line 2 has 6,001 tokens"):
        exported.translate(["a", "a " * 3000])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coverage_penalty": 0.2}, "coverage_penalty=0.2: a SavedModel takes beam_size, length_"),
        ({"samples": 1, "top_k": 3}, "top_k=3: a SavedModel takes temperature, seed and no other"),
        ({"blockwise": True, "max_length": 9}, "max_length=9: a SavedModel takes blockwise and no"),
        ({"min_length": "3"}, "min_length=3: a SavedModel takes"),
        ({"repetition_penalty": 1.2, "beam_size": 2}, "repetition_penalty=1.2: a SavedModel"),
        ({"samples": 2}, "samples=2: a SavedModel draws one translation of a line"),
        ({"max_length": "2x+10"}, r"max_length=2x\+10: a SavedModel takes a number of tokens"),
        ({"precision": "bfloat16"}, "precision=bfloat16: .* was exported with its own precision"),
        ({"beam_size": 0}, "beam_size"),
        ({"beam_size": 33}, r"^beam_size=33: .* takes at most 32\. Pass less, or name the folder "),
        ({"length_penalty": 10.5}, r"^length_penalty=10\.5: .* takes at most 10\. "),
        ({"max_length": "2049"}, r"^max_length=2049: .* takes at most 2048\. "),
        ({"samples": 1, "beam_size": 2}, "exclude each other"),
    ],
)
def test_an_option_that_a_saved_model_does_not_take_is_refused_by_name(folder, options, message):
    with pytest.raises(ValueError, match=message):
        Translator.load(folder, **options)


def test_options_that_it_would_clamp_can_be_refused_before_a_search(loaded, folder):
    wide = product.Exported(folder / "1", {}, description={"decoding": {"beam_size": 40}})
    for check, most in ((lambda options: loaded().check(**options), 32), (wide.check, 40)):
        check({"beam_size": most, "length_penalty": 10.0})
        with pytest.raises(ValueError, match=rf"^beam_size={most + 1}: .* takes at most {most}\."):
            check({"beam_size": most + 1, "length_penalty": 0.6})


def test_it_knows_the_pieces_of_its_source_but_for_special_ones(exported):
    tokenizer = exported._model._source
    live = types.SimpleNamespace(pieces=list(map(tokenizer.id_to_piece, range(len(tokenizer)))))
    live = Live(types.SimpleNamespace(vocabulary=types.SimpleNamespace(source=live)), False)
    text = tokenizer.id_to_piece(len(tokenizer) - 1)
    for model in (exported._model, live):
        assert model.has_piece(text)
        for unknown in ("<2de>", "<unk>", "</s>", "<0x41>"):
            assert not model.has_piece(unknown)


def test_prefixes_of_greedy_search_and_scores_of_samples_are_refused(loaded):
    with pytest.raises(ValueError, match="prefixes and beam_size exclude each other"):
        loaded(beam_size=1).translate(["a"], ["b"])
    with pytest.raises(ValueError, match="prefixes and samples exclude each other"):
        loaded(samples=1).translate(["a"], ["b"])
    with pytest.raises(ValueError, match="no scores of samples"):
        loaded(samples=1).translate_in_detail(["a"])


@pytest.fixture(scope="module")
def poor(tmp_path_factory):
    """Write a SavedModel with one signature, which translates by upper case."""
    tokenizer = tensorflow_text.SentencepieceTokenizer(
        model=(FIXTURE / "run" / "vocabulary.model").read_bytes()
    )

    class Upper(tf.Module):
        def __init__(self, has_tokenizer):
            super().__init__()
            self.tokenizer = tokenizer if has_tokenizer else None
            text = tf.TensorSpec([None], tf.string, name="text")
            self.upper = tf.function(self._upper, input_signature=[text])

        def _upper(self, text):
            pieces = self.tokenizer.tokenize(text) if self.tokenizer else text
            with tf.control_dependencies([tf.identity(pieces)]):
                return {"translation": tf.strings.upper(text)}

    def make(has_tokenizer):
        path = tmp_path_factory.mktemp("poor")
        module = Upper(has_tokenizer)
        tf.saved_model.save(module, str(path), signatures={"serving_default": module.upper})
        return path

    return make


def test_a_missing_signature_or_tokenizer_is_named(poor):
    with pytest.raises(ValueError, match="no SentencePiece tokenizer"):
        Translator.load(poor(has_tokenizer=False))
    path = poor(has_tokenizer=True)
    translator = Translator.load(path)
    assert translator.translate(["a b"]) == ["A B"]
    assert translator.description == {}
    with pytest.raises(ValueError, match="has no signature `score`"):
        translator.score(["a"], ["b"])
    for function in (translator.align, translator.attention):
        with pytest.raises(ValueError, match="has no signature `align`"):
            function(["a"], ["b"]) if function == translator.align else function("a", "b")
    with pytest.raises(ValueError, match="has no signature `translate`"):
        Translator.load(path, beam_size=2)


@pytest.mark.parametrize("content", [b"", b"damaged", None])
def test_a_damaged_file_and_lost_weights_are_reported_in_one_line(folder, tmp_path, content):
    whole = (folder / "1" / "saved_model.pb").read_bytes()
    (tmp_path / "saved_model.pb").write_bytes(whole if content is None else content)
    with pytest.raises(ValueError, match="is no SavedModel that can be loaded: ") as refused:
        Translator.load(tmp_path).translate(["a"])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("task", ["language_modelling", "tagging"])
def test_an_export_of_another_task_is_refused(task, tmp_path):
    assert ParsingModule.output == product.TREE  # By this a parser is known.
    (tmp_path / "saved_model.pb").write_bytes(b"")
    (tmp_path / "model.json").write_text(json.dumps({"task": task}))
    with pytest.raises(
        ValueError, match=f"of the task {task}\\. Try .*`generate` .language models"
    ):
        Translator.load(tmp_path)
    # The control: of a translator, the graph is read too.
    (tmp_path / "model.json").write_text("{}")
    with pytest.raises(ValueError, match="holds no graph"):
        Translator.load(tmp_path)


@pytest.mark.parametrize("outputs", [{}, {"label": 1, "labels": 2}])
def test_an_export_without_one_string_per_line_is_refused(outputs):
    signatures = {"serving_default": types.SimpleNamespace(outputs=outputs)} if outputs else {}
    functions = types.SimpleNamespace(name="here", signatures=signatures)
    with pytest.raises(ValueError, match=r"Received: (label, labels|no such signature)"):
        product._only_output(functions)


def test_hypotheses_are_counted_by_the_exported_beam():
    assert request({"num_hypotheses": 6}, 8) == ("translate", {"num_hypotheses": 6})
    assert request({"num_hypotheses": 4}, None) == ("translate", {"num_hypotheses": 4})
    for options, beam_size in (({"num_hypotheses": 6}, None), ({"num_hypotheses": 4}, 2)):
        with pytest.raises(ValueError, match="num_hypotheses"):
            request(options, beam_size)
    assert request({"samples": 1}, 8) == ("sample", {})
