"""Strings in, strings out: the graph around the model."""

import re

import numpy as np
import pytest
import tensorflow as tf
from eager import eagerly

from keras_transformer.decoding import DecodingOptions
from keras_transformer.decoding.remembered_options import remembered
from keras_transformer.inference import loading
from keras_transformer.inference.translator import Translator, link_words
from keras_transformer.models import Ensemble, Transformer
from keras_transformer.tasks.translation.module import MAX_SOURCE_LENGTH, TranslationModule
from pipelines.vocabularies import vocabulary
from pipelines.whole_files import write_json

SOURCE = ["▁the", "▁hou", "se", "▁burns", "</s>"]
TARGET = ["▁das", "▁Haus", "▁brenn", "t", "</s>"]
ATTENTION = np.array(
    [
        [0.6, 0.1, 0.1, 0.1, 0.1],
        [0.3, 0.2, 0.2, 0.1, 0.2],
        [0.1, 0.1, 0.1, 0.5, 0.2],
        [0.4, 0.1, 0.1, 0.3, 0.1],
        [0.0, 0.0, 0.0, 0.1, 0.9],
    ]
)


@pytest.fixture(scope="module")
def module(model, pieces):
    return TranslationModule(model, pieces, DecodingOptions(beam_size=2))


def alone(function, *columns):
    """The results of a function of lists, called for each row of the columns alone."""
    return [function(*([entry] for entry in row))[0] for row in zip(*columns, strict=True)]


def test_a_source_is_cut_at_its_limit(module):
    ids = module.source_ids(tf.constant(["a b", "a " * 3000]))
    assert ids.row_lengths().numpy().tolist() == [3, MAX_SOURCE_LENGTH]
    assert ids[1, -1] == vocabulary.EOS


def test_a_vocabulary_of_another_width_is_refused(pieces):
    mismatched = Transformer(vocabulary_size=299, num_layers=1, d_model=16, d_ff=32, num_heads=2)
    with pytest.raises(ValueError, match="299 pieces"):
        TranslationModule(mismatched, pieces)


def test_one_graph_serves_every_shape(module):
    for text in (["a"], ["a b c d", "b"], ["c"] * 7, []):
        module.translate(tf.constant(text, tf.string))
    assert module.translate.experimental_get_tracing_count() == 1


def test_batches_decoded_at_once_give_what_one_by_one_gives(module, monkeypatch):
    lines, translator = [f"{word} b c d" for word in "abcdefghijk"], Translator(module)
    translations = translator.translate(lines, batch_tokens=12, batches_at_once=3)
    assert translations == translator.translate(lines, batch_tokens=12)

    def gone(text):
        raise OSError("gone")

    monkeypatch.setattr(module, "translate", gone)
    with pytest.raises(OSError, match="gone"):
        translator.translate(lines, batch_tokens=12, batches_at_once=3)


def test_scores_come_in_order_and_are_those_of_each_pair_alone(module):
    lines, references = ["a b c d e f", "b", "c d"], ["f e", "b b b b b b", ""]
    translator = Translator(module)
    together = translator.score(lines, references, batch_tokens=12)
    assert [tokens for _, tokens in together] == [3, 7, 1]
    each = alone(translator.score, lines, references)
    assert together == [(pytest.approx(score, rel=1e-5), tokens) for score, tokens in each]
    assert all(score < 0 for score, _ in together)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("score", (["a", "b"], ["a"]), r"^`references` must be as many as `lines`, 2\. .*: 1\.$"),
        ("score", (["a"], "b"), r"^`references` must be a list .* Received: 'b'\.$"),
        ("score", (["a"], ["a " * 3000]), "line 1 has 3,001 tokens"),
        ("translate", (["a"], ["a", "b"]), r"^`prefixes` must be as many as `lines`, 1\. "),
        ("attention", (["a"], ["b"]), r"^`line` must be a string\. Received: \['a'\]\.$"),
        ("attention", ("a", None), r"^`translation` must be a string\. Received: None\.$"),
    ],
)
def test_arguments_of_the_wrong_count_type_or_length_are_refused(module, name, arguments, message):
    with pytest.raises(ValueError, match=message):
        getattr(Translator(module), name)(*arguments)


def test_hypotheses_come_best_first_with_what_each_piece_costs(model, pieces):
    options = DecodingOptions(beam_size=4, num_hypotheses=3, max_length=6)
    translator = Translator(TranslationModule(model, pieces, options))
    lines = ["a b c d e f", "b", ""]
    with eagerly():
        details = translator.translate_in_detail(lines)
        translations = translator.translate(lines)
    for hypotheses in details:
        assert len(hypotheses) == 3
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)
        for hypothesis in hypotheses:
            assert hypothesis.pieces[-1] == "</s>"
            assert len(hypothesis.pieces) == len(hypothesis.log_probabilities) <= 6
            penalty = ((5 + len(hypothesis.pieces)) / 6) ** 0.6
            score = sum(hypothesis.log_probabilities) / penalty
            assert score == pytest.approx(hypothesis.score, rel=1e-5)
    assert [hypotheses[0].text for hypotheses in details] == translations


def test_a_translation_begins_with_its_prefix(module):
    translator, lines, prefixes = Translator(module), ["a b c", "d", "e f"], ["c", "", "f e d"]
    translations = translator.translate(lines, prefixes)
    assert len(translations) == 3
    assert all(map(str.startswith, translations, prefixes))
    assert translations[1] == translator.translate(lines)[1]
    assert translations == alone(translator.translate, lines, prefixes)


def test_each_sentence_of_a_line_is_translated_on_its_own(module):
    translator = Translator(module)
    both, first, second = translator.translate(
        ["The dog runs. The cat sleeps.", "The dog runs.", "The cat sleeps."], split_sentences=True
    )
    assert both == f"{first} {second}"
    assert [first, second] == translator.translate(["The dog runs.", "The cat sleeps."])
    long = " ".join(["The dog runs."] * 500)
    translations = translator.translate([long], split_sentences=True)
    assert translations == [" ".join(translator.translate(["The dog runs."]) * 500)]
    with pytest.raises(ValueError, match="exclude each other"):
        translator.translate(["a"], ["b"], split_sentences=True)


def test_the_tag_of_a_line_is_that_of_each_of_its_sentences(module, pieces, monkeypatch):
    sentences = []

    def translate(lines):
        sentences.extend(lines)
        return lines

    translator = Translator(module)
    monkeypatch.setattr(translator._model, "translate", translate)
    monkeypatch.setitem(vars(pieces), "pieces", [*pieces.pieces, "<2de>"])
    lines = [f"{tag} The dog runs. The cat sleeps." for tag in ("<2de>", "<2fr>")]
    expected = ["<2de> The dog runs. <2de> The cat sleeps.", lines[1]]
    assert translator.translate(lines, split_sentences=True) == expected
    assert len(sentences) == 4
    assert {"<2de> The cat sleeps.", "The cat sleeps."} < set(sentences)


def test_progress_is_reported(module):
    reported = []
    Translator(module).translate(["a", "b c", "d"] * 3, batch_tokens=6, report=reported.append)
    assert sum(reported) == 9
    assert len(reported) > 2


def test_attention_is_that_of_the_pair_alone_without_padding(module, model):
    translator = Translator(module)
    attention = translator.attention("a b", "b a c")
    source, target = attention["source_pieces"], attention["target_pieces"]
    assert (source[-1], target[-1]) == ("</s>", "</s>")
    sizes = (1, 2)
    assert attention["encoder"].shape == (*sizes, len(source), len(source))
    assert attention["decoder"].shape == (*sizes, len(target), len(target))
    assert attention["cross"].shape == (*sizes, len(target), len(source))
    np.testing.assert_allclose(attention["cross"].sum(-1), 1, atol=1e-5)
    ids = module.source_ids(tf.constant(["a b", "b a c"]))
    shifted = [[vocabulary.BOS, *ids[1, :-1].numpy()]]
    expected = model.attention_weights(ids[:1].to_tensor(), np.array(shifted))["cross"][0]
    np.testing.assert_allclose(attention["cross"], expected, atol=1e-6)


@pytest.mark.parametrize("path", [None, [None], 1])
def test_a_path_of_another_type_is_refused(path):
    with pytest.raises(ValueError, match=r"^`path` must be a path or a list of paths\. Received: "):
        Translator.load(path)


def test_words_are_aligned_alike_alone_and_in_a_batch(module):
    translator, lines, references = Translator(module), ["a b c", "d", ""], ["c b", "d d d", "a"]
    links = translator.align(lines, references)
    assert links == alone(translator.align, lines, references)
    assert [[target for _, target in line] for line in links] == [[0, 1], [0, 1, 2], []]


def test_an_ensemble_translates_scores_and_has_no_attention(model, pieces):
    second = Transformer(vocabulary_size=300, num_layers=1, d_model=24, d_ff=32, num_heads=2)
    ensemble = Ensemble([model, second])
    for coverage_penalty in (0.0, 0.5):
        options = DecodingOptions(
            beam_size=2, length_penalty=0.0, coverage_penalty=coverage_penalty, max_length=2
        )
        translator = Translator(TranslationModule(ensemble, pieces, options))
        with eagerly():
            [[best]] = translator.translate_in_detail(["a b c"])
        lost = sum(best.log_probabilities) - best.score
        assert lost > 0.01 if coverage_penalty else lost == pytest.approx(0, abs=1e-4)
    assert translator.score(["a b c"], ["b"])[0][0] < 0
    with pytest.raises(ValueError, match="an ensemble has no attention of its own"):
        translator.align(["a"], ["b"])


def test_an_ensemble_of_runs_that_decode_by_blocks_searches_greedily(
    model, pieces, tmp_path, monkeypatch
):
    options = DecodingOptions(blockwise=True, max_length=9)
    write_json(tmp_path / "model.json", {"decoding": remembered(options)})
    monkeypatch.setattr(loading, "load_trained", lambda *_: (model, pieces))
    ensemble, _ = loading.load_model([tmp_path, tmp_path], "float32", {})
    assert ensemble._module.options == DecodingOptions(beam_size=1, max_length=9)
    with pytest.raises(ValueError, match="`blockwise` needs the heads"):
        loading.load_model([tmp_path, tmp_path], "float32", {"blockwise": True})


END = ["</s>"]
TO_THE_END = np.tile([0.1, 0.0, 0.0, 0.2, 0.7], (5, 1))
LINKS = {
    # Haus: 0.3 to "the", 0.4 to "house". brennt: 0.1 + 0.4 to "the", 0.5 + 0.3 to "burns".
    "pieces add up on both sides": (SOURCE, TARGET, ATTENTION, [(0, 0), (1, 1), (2, 2)]),
    "the end is no word": (SOURCE, TARGET, TO_THE_END, [(2, 0), (2, 1), (2, 2)]),
    "no source": (END, TARGET, np.ones((5, 1)), []),
    "no target": (SOURCE, END, np.ones((1, 5)), []),
    "neither": (END, END, np.ones((1, 1)), []),
    "first pieces without a space": (
        ["a", "b", *END],
        ["c", "▁d", *END],
        np.ones((3, 3)),
        [(0, 0), (0, 1)],
    ),
}


@pytest.mark.parametrize("name", LINKS)
def test_words_are_linked_by_the_sums_over_their_pieces(name):
    *arguments, expected = LINKS[name]
    assert link_words(*arguments) == expected


@pytest.mark.parametrize("search", [{"beam_size": 1}, {"beam_size": 3}, {"samples": 3}], ids=str)
def test_forbidden_words_never_come(model, pieces, search):
    """In any search, neither in the best nor in another hypothesis."""
    lines = ["a b c d", "c c a", "e f"]

    def words(**more):
        options = DecodingOptions(**search, max_length=8, **more)
        module = TranslationModule(model, pieces, options)
        texts = module.functions()["nbest"](tf.constant(lines))["translations"].numpy().ravel()
        return [re.findall(r"\w+", text.decode()) for text in texts]

    with eagerly():
        usual = sorted({word for line in words() for word in line})
        assert usual, "the control: without the rule they come"
        forbidden = usual[:: max(1, len(usual) // 4)]
        remaining = {word for line in words(forbidden_words=forbidden) for word in line}
    assert not remaining & set(forbidden)
