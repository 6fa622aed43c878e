"""Strings in, strings out: the graph around the model, and its signatures for a server (that a
SavedModel has the same: test_saved_model.py); and with a vocabulary for each language.
"""

import re

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from drawn_models import random_model
from exports import answers, checks_here
from small_model import eagerly

from keras_transformer.decoding import DecodingOptions
from keras_transformer.decoding.options import MOST_HYPOTHESES
from keras_transformer.decoding.remembered_options import remembered
from keras_transformer.inference import loading, portable_export
from keras_transformer.inference.translator import Translator, link_words
from keras_transformer.models import Ensemble, Transformer
from keras_transformer.runs.model_path import starting_point
from keras_transformer.saved_models.write import export
from keras_transformer.tasks.translation.module import MAX_SOURCE_LENGTH, TranslationModule
from pipelines import vocabularies
from pipelines.special_ids import BOS, EOS
from pipelines.vocabularies import SeparateVocabularies, vocabulary
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


SENTENCES = [
    "a b c d",
    "",
    "d d",
    "   ",
    "e a b c d f g",
    b"\xff\xfea",
    "\a\t\x00b",
    "日本語 😀",
    "a " * 40,
]


@pytest.fixture(scope="module")
def beam_of_three(model, pieces):
    return module_of(model, pieces, beam_size=3)


@pytest.fixture(scope="module")
def ask(beam_of_three):
    """The outputs of a signature, as arrays, for lines and options."""
    functions = beam_of_three.functions()

    def ask(name, text, **options):
        return {
            key: tensor.numpy()
            for key, tensor in functions[name](tf.constant(text, tf.string), **options).items()
        }

    ask.names = set(functions)
    return ask


def module_of(model, pieces, **options):
    return TranslationModule(model, pieces, DecodingOptions(**{"max_length": "+2", **options}))


def hypotheses(model, pieces, line, beam_size=3, **options):
    """What the live model gives for one line, best first, with a beam of 3 by default."""
    module = module_of(model, pieces, beam_size=beam_size, **options)
    with eagerly():
        [ranked] = Translator(module).translate_in_detail([line])
    return ranked


def texts(rows):
    return [text.decode() for text in rows]


def test_a_batch_gives_what_each_text_gives_alone(ask):
    for name in ("serving_default", "sample"):
        together = ask(name, SENTENCES)["translation"].tolist()
        assert together == [ask(name, [text])["translation"][0] for text in SENTENCES]
        assert [together[1], together[3]] == [b"", b""]
    batch, alone = ask("nbest", SENTENCES), [ask("nbest", [text]) for text in SENTENCES]
    expected = [outputs["translations"][0].tolist() for outputs in alone]
    assert batch["translations"].tolist() == expected
    scores = [outputs["scores"][0] for outputs in alone]
    np.testing.assert_allclose(batch["scores"], scores, rtol=1e-5)


def test_no_sentences_give_nothing(ask):
    for name in ask.names:
        pairs = {"reference": tf.constant([], tf.string)} if name in ("score", "align") else {}
        assert all(len(output) == 0 for output in ask(name, [], **pairs).values())


def test_left_out_options_are_those_of_the_export(ask):
    expected = ask("serving_default", SENTENCES)["translation"].tolist()
    assert ask("translate", SENTENCES)["translations"][:, 0].tolist() == expected


def test_each_sentence_of_a_request_may_have_options_of_its_own(ask, model, pieces):
    lines = ["a b c", "d d", "a b c", "e f"]
    widths, alphas, longest, counts = [1, 4, 2, 3], [0.6, 0.0, 1.0, 2.0], [0, 5, 3, 0], [1, 3, 2, 3]
    forms = ["", "length", "length", "paper"]
    outputs = ask(
        "translate",
        lines,
        beam_size=tf.constant(widths),
        length_penalty=tf.constant(alphas),
        length_penalty_form=tf.constant(forms),
        max_length=tf.constant(longest),
        num_hypotheses=tf.constant(counts),
    )
    for row, (line, width, alpha, form, limit, count) in enumerate(
        zip(lines, widths, alphas, forms, longest, counts, strict=True)
    ):
        options = {"beam_size": width, "length_penalty": alpha, "num_hypotheses": count}
        options |= {"max_length": limit} if limit else {}
        options |= {"length_penalty_form": form} if form else {}
        expected = hypotheses(model, pieces, line, **options)
        translations, scores = outputs["translations"][row], outputs["scores"][row]
        assert texts(translations[:count]) == [hypothesis.text for hypothesis in expected]
        if width > 1:  # greedy search is not ranked by the penalty
            live_scores = [hypothesis.score for hypothesis in expected]
            np.testing.assert_allclose(scores[:count], live_scores, rtol=1e-5)
        assert translations[count:].tolist() == [b""] * (4 - 1 - count)
        assert (scores[count:] == np.finfo(np.float32).min).all()


def test_options_out_of_range_count_as_the_nearest_end(ask):
    line = ["a b c d"]
    for wrong, nearest in (
        ({"beam_size": [0]}, {"beam_size": [1]}),
        ({"beam_size": [10**6]}, {"beam_size": [MOST_HYPOTHESES]}),
        ({"num_hypotheses": [9]}, {"num_hypotheses": [3]}),
        ({"num_hypotheses": [-1]}, {"num_hypotheses": [1]}),
        ({"length_penalty": [float("nan")]}, {"length_penalty": [0.0]}),
        ({"length_penalty_form": ["lenght"]}, {"length_penalty_form": ["paper"]}),
        ({"max_length": [-3]}, {"max_length": [0]}),
    ):
        actual, expected = (
            ask("translate", line, **{name: tf.constant(value) for name, value in options.items()})
            for options in (wrong, nearest)
        )
        assert actual["translations"].tolist() == expected["translations"].tolist()
        assert actual["scores"].tolist() == expected["scores"].tolist()


def test_nbest_is_the_whole_beam(ask, model, pieces):
    outputs = ask("nbest", ["a b c d"])
    expected = hypotheses(model, pieces, "a b c d", num_hypotheses=3)
    assert texts(outputs["translations"][0]) == [hypothesis.text for hypothesis in expected]
    scores = [hypothesis.score for hypothesis in expected]
    np.testing.assert_allclose(outputs["scores"][0], scores, rtol=1e-5)


def test_a_sample_follows_its_seed(ask, model, pieces):
    line = ["a b c d"]
    first, again, different = (
        ask("sample", line, seed=tf.constant([seed], tf.int64))["translation"][0]
        for seed in (5, 5, 6)
    )
    assert first == again != different
    drawing = Translator(module_of(model, pieces, samples=1, seed=5))
    with eagerly():
        assert drawing.translate(line) == texts([first])


def test_the_next_piece_is_as_likely_as_the_search_says(ask, model, pieces):
    [best] = hypotheses(model, pieces, "a b c d", num_hypotheses=1)
    count = len(best.pieces) - 1  # The end comes because the limit forces it.
    assert count > 2
    prefixes = [" ".join(best.pieces[:place]) for place in range(count)]
    outputs = ask("next_pieces", ["a b c d"] * count, prefix=tf.constant(prefixes))
    assert outputs["pieces"].shape == outputs["probabilities"].shape == (count, 20)
    expected = np.exp(best.log_probabilities)
    for row in range(count):
        place = texts(outputs["pieces"][row]).index(best.pieces[row])
        assert outputs["model_probabilities"][row][place] == pytest.approx(expected[row], rel=1e-4)
    # Left out, the prefix is empty.
    alone = ask("next_pieces", ["a b c d"], top_k=tf.constant([1]))
    assert alone["pieces"].tolist() == outputs["pieces"][:1].tolist()
    assert alone["probabilities"].tolist() == [[1.0] + [0.0] * 19]


def test_options_of_the_next_piece_that_are_out_of_range_are_clamped(ask):
    lines = ["a b"] * 4
    outputs = ask(
        "next_pieces",
        lines,
        temperature=tf.constant([0.0, 1.0, 1.0, np.nan]),
        top_k=tf.constant([-1, 0, 0, 0]),
        top_p=tf.constant([1.0, 7.0, -1.0, np.nan]),
        prefix=tf.constant([b"no\xff piece"]),
    )
    assert (outputs["pieces"] == outputs["pieces"][:1]).all()
    for name in ("probabilities", "model_probabilities"):
        np.testing.assert_allclose(outputs[name], np.tile(outputs[name][:1], (4, 1)), rtol=1e-5)
    np.testing.assert_array_less(0.0, outputs["probabilities"])


def test_scores_and_pieces_are_those_of_the_live_model(ask, beam_of_three):
    lines, references = ["a b c", "d"], tf.constant(["c b", "d d d"])
    outputs = ask("score", lines, reference=references)
    live = Translator(beam_of_three).score(lines, ["c b", "d d d"])
    np.testing.assert_allclose(outputs["log_probability"], [log_p for log_p, _ in live], rtol=1e-5)
    assert outputs["tokens"].tolist() == [tokens for _, tokens in live]
    aligned = ask("align", lines, reference=references)
    assert texts(aligned["source_pieces"][1])[:2] == ["▁d", "</s>"]
    expected = (2, 1, 2, aligned["target_pieces"].shape[1], aligned["source_pieces"].shape[1])
    assert aligned["attention"].shape == expected


def test_an_export_has_only_the_signatures_that_it_can_serve(model, pieces):
    assert "align" not in TranslationModule(Ensemble([model, model]), pieces).functions()
    drawing = module_of(model, pieces, samples=4, num_hypotheses=2).functions()
    names = {"serving_default", "nbest", "score", "sample", "next_pieces", "align"}
    assert set(drawing) == names
    with eagerly():
        # All samples, of which the export itself would return 2.
        assert drawing["nbest"](tf.constant(["a b c"]))["translations"].shape == (1, 4)


def test_a_request_may_have_any_beam_whatever_beam_was_exported(model, pieces):
    line = tf.constant(["a b c d"])
    greedy, wide = (
        module_of(model, pieces, beam_size=size, max_length=4).functions() for size in (1, 40)
    )
    [expected] = hypotheses(model, pieces, "a b c d", max_length=4)
    with eagerly():
        outputs = greedy["translate"](line, beam_size=tf.constant([3]))
        assert wide["nbest"](line)["translations"].shape == (1, 40)
    assert texts(outputs["translations"].numpy()[0]) == [expected.text]
    np.testing.assert_allclose(outputs["scores"], [[expected.score]], rtol=1e-5)


def test_greedy_search_scores_by_log_p_alone_as_a_run_does(ask, model, pieces):
    """Whatever the penalty: one request's beam of 1, and an export with a beam of 1."""
    line = ["a b c d"]
    [expected] = hypotheses(model, pieces, line[0], beam_size=1)
    assert expected.score == pytest.approx(sum(expected.log_probabilities), rel=1e-5)
    alone = ask("translate", line, beam_size=tf.constant([1]), length_penalty=tf.constant([2.0]))
    both = ask("translate", line * 2, beam_size=tf.constant([1, 3]))
    np.testing.assert_allclose(alone["scores"], [[expected.score]], rtol=1e-5)
    np.testing.assert_allclose(both["scores"][0, 0], expected.score, rtol=1e-5)
    # A control: a wider beam is ranked by the penalty.
    wide = hypotheses(model, pieces, line[0])[0]
    np.testing.assert_allclose(both["scores"][1, 0], wide.score, rtol=1e-5)
    assert wide.score != pytest.approx(sum(wide.log_probabilities), rel=1e-3)
    greedy = module_of(model, pieces, beam_size=1).functions()
    with eagerly():
        nbest = greedy["nbest"](tf.constant(line))["scores"]
    np.testing.assert_allclose(nbest, [[expected.score]], rtol=1e-5)


# By language; each vocabulary lacks the letters of the other language.
LETTERS = ("abcdefgh", "stuvwxyz")
SIZE = 272
LINES = ["a b c d", "d d", "e a b c", "b"]
REFERENCES = ["z y x w", "w", "v x y z z", "y y y"]
GREEDY = DecodingOptions(beam_size=1, max_length=9, min_length=1)


@pytest.fixture(scope="module")
def both():
    random = np.random.default_rng(1)
    sides = ([" ".join(random.choice(list(letters), 9)) for _ in range(300)] for letters in LETTERS)
    return vocabularies.learn(*sides, "separate", SIZE)


@pytest.fixture(scope="module")
def model_of_two_vocabularies():
    return random_model(vocabulary_size=SIZE, tie_embeddings="decoder")


@pytest.fixture(scope="module")
def of_two_vocabularies(model_of_two_vocabularies, both):
    options = DecodingOptions(beam_size=2, max_length=9, min_length=1)
    return TranslationModule(model_of_two_vocabularies, both, options)


def ids_of(side, line):
    return sentencepiece.SentencePieceProcessor(model_proto=side.model).encode(line)


def log_probability(model_of_two_vocabularies, source, target):
    """Log P of a target by the model alone, in float64."""
    logits = model_of_two_vocabularies((np.array([source]), np.array([[BOS, *target[:-1]]])))[0]
    logits = np.asarray(logits, np.float64)
    each = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return each[np.arange(len(target)), target].sum()


def scores(of_two_vocabularies, lines=LINES, references=REFERENCES):
    with eagerly():
        return Translator(of_two_vocabularies).score(lines, references)


def test_scores_are_those_of_each_sides_own_ids(
    model_of_two_vocabularies, both, of_two_vocabularies
):
    expected = [
        log_probability(
            model_of_two_vocabularies,
            [*ids_of(both.source, line), EOS],
            [*ids_of(both.target, text), EOS],
        )
        for line, text in zip(LINES, REFERENCES, strict=True)
    ]
    scored = scores(of_two_vocabularies)
    np.testing.assert_allclose([score for score, _ in scored], expected, rtol=0, atol=1e-4)
    lengths = [len(ids_of(both.target, reference)) + 1 for reference in REFERENCES]
    assert [tokens for _, tokens in scored] == lengths
    # The control: with the sides swapped the ids differ.
    swapped = TranslationModule(
        model_of_two_vocabularies, SeparateVocabularies(both.target, both.source)
    )
    assert not np.allclose(scores(swapped), scored)


def test_translations_are_text_of_the_target_alone(both, of_two_vocabularies):
    with eagerly():
        details = Translator(of_two_vocabularies).translate_in_detail(LINES, ["z y", "", "", ""])
    for best, *_ in details:
        ids = tf.ragged.constant([list(map(both.target.pieces.index, best.pieces))])
        assert best.text == both.target.detokenize(ids).numpy()[0].decode()
    assert details[0][0].text.startswith("z y")


def test_each_side_is_measured_and_shown_by_its_own_pieces(both, of_two_vocabularies):
    translator = Translator(of_two_vocabularies)
    with eagerly():
        shown = translator.attention("a b", "z y x")
        foreign = "a" * 800
        lengths = [len(ids_of(side, foreign)) + 1 for side in (both.target, both.source)]
        assert translator._model.target_lengths([foreign]) == lengths[:1]
        assert translator._model.lengths([foreign]) == lengths[1:]
    for name, side, text in (
        ("source_pieces", both.source, "a b"),
        ("target_pieces", both.target, "z y x"),
    ):
        assert shown[name] == [*(side.pieces[number] for number in ids_of(side, text)), "</s>"]


@pytest.mark.slow
def test_a_saved_model_holds_both_and_gives_what_the_live_model_gives(
    of_two_vocabularies, both, tmp_path
):
    with checks_here():
        version = export(of_two_vocabularies, tmp_path / "m", {}, LINES)
    exported = Translator.load(tmp_path / "m")
    live = Translator(of_two_vocabularies)
    assert exported.translate(LINES) == live.translate(LINES)
    np.testing.assert_allclose(
        exported.score(LINES, REFERENCES), scores(of_two_vocabularies), atol=1e-4
    )
    assert exported.align(LINES, REFERENCES) == live.align(LINES, REFERENCES)
    assert exported.translate(LINES[:1], ["z y"]) == live.translate(LINES[:1], ["z y"])
    for text in ("a b c", "z y x", "a" * 50):
        assert exported._model.lengths([text]) == live._model.lengths([text])
        assert exported._model.target_lengths([text]) == live._model.target_lengths([text])
    weights, pieces = starting_point(version)
    assert pieces.fingerprint == both.fingerprint
    assert "weights/source_embedding/table" in weights


@pytest.mark.slow
def test_ctranslate2_with_two_vocabularies_gives_the_same(
    of_two_vocabularies, model_of_two_vocabularies, both, tmp_path
):
    theirs, translations = answers(
        tmp_path / "c", model_of_two_vocabularies, both, LINES, REFERENCES
    )
    np.testing.assert_allclose(
        [score for score, _ in scores(of_two_vocabularies)], theirs, rtol=0, atol=1e-3
    )
    with eagerly():
        assert translations == Translator(
            TranslationModule(model_of_two_vocabularies, both, GREEDY)
        ).translate(LINES)


# A translator of word pieces in every format.
WORDS = ["babe abe  be", "", "Größe ba漢<é", "ebabeba 12..."]
RUNTIMES = {"onnx": "tf2onnx", "litert": "ai_edge_litert"}


@pytest.fixture(scope="module")
def of_word_pieces():
    """A module of word pieces, and its live translations."""
    random = np.random.default_rng(1)
    words = ["".join(random.choice(["ba", "be", "eba"], 3)) for _ in range(300)]
    pieces = vocabulary.learn([" ".join(words)], 290, model_type="word_piece")
    module = TranslationModule(random_model(vocabulary_size=pieces.size), pieces, GREEDY)
    with eagerly():
        return module, Translator(module).translate(WORDS)


@pytest.mark.slow
def test_a_saved_model_of_word_pieces_takes_raw_strings(of_word_pieces, tmp_path):
    module, expected = of_word_pieces
    with checks_here():
        export(module, tmp_path / "m", {}, WORDS)
    assert Translator.load(tmp_path / "m").translate(WORDS) == expected
    assert len(set(expected)) > 2


@pytest.mark.parametrize("form", list(RUNTIMES))
def test_a_folder_of_graphs_gives_the_same_of_word_pieces(of_word_pieces, form, tmp_path):
    pytest.importorskip(RUNTIMES[form])
    module, expected = of_word_pieces
    described = {"task": "translation", "corpus": {"source_language": "a", "target_language": "b"}}
    folder = portable_export.export(module, tmp_path / "m", described, WORDS[:1], form=form)
    assert Translator.load(folder).translate(WORDS) == expected


def test_ctranslate2_gives_the_same_of_word_pieces(of_word_pieces, tmp_path):
    module, expected = of_word_pieces
    lines = [line for line in WORDS if line]
    graphs = (module._graphs.model, module.vocabulary)
    _, translations = answers(tmp_path / "c", *graphs, lines, lines)
    assert translations == [text for line, text in zip(WORDS, expected, strict=True) if line]
