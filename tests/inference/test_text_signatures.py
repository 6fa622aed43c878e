"""The signatures for a server. That a SavedModel has the same: test_saved_model.py.

Requests run as graphs; what they are compared with is computed without one.
"""

import numpy as np
import pytest
import tensorflow as tf
from eager import eagerly

from keras_transformer.decoding import DecodingOptions
from keras_transformer.decoding.options import MOST_HYPOTHESES
from keras_transformer.inference.translator import Translator
from keras_transformer.models import Ensemble
from keras_transformer.tasks.translation.module import TranslationModule

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
def module(model, pieces):
    return module_of(model, pieces, beam_size=3)


@pytest.fixture(scope="module")
def ask(module):
    """The outputs of a signature, as arrays, for lines and options."""
    functions = module.functions()

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


def test_scores_and_pieces_are_those_of_the_live_model(ask, module):
    lines, references = ["a b c", "d"], tf.constant(["c b", "d d d"])
    outputs = ask("score", lines, reference=references)
    live = Translator(module).score(lines, ["c b", "d d d"])
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
