"""Heads of a model: switched off one at a time, surveyed, compared with trees."""

import numpy as np
import pytest
from drawn_models import drawn
from eager import eagerly

from keras_transformer.decoding import DecodingOptions
from keras_transformer.evaluation import bleu
from keras_transformer.inference.translator import Translator
from keras_transformer.tasks.translation.module import TranslationModule
from keras_transformer.visualization.head_maps import (
    agreement_with,
    points_lost,
    survey_of,
    text_of,
)
from keras_transformer.visualization.head_measures import (
    agreement,
    attentions_of,
    by_chance,
    losses,
    survey,
    together,
    without_head,
)

SOURCE = np.array([[5, 6, 7, 3]])
TARGET = np.array([[2, 9, 8]])


def logits(model):
    return np.array(model((SOURCE, TARGET)))


def without_values(attention, head):
    """The kernel of the values in which a head's columns are zero: its output is zero."""
    kernel = attention.value_kernel.numpy()
    kernel[:, head * attention.d_v : (head + 1) * attention.d_v] = 0
    return kernel


@pytest.mark.parametrize("stack", ["encoder", "decoder", "cross"])
def test_a_head_without_its_rows_is_one_that_gives_zeros(stack, model):
    [attention] = attentions_of(model)[stack]
    before = logits(model)
    with without_head(attention, 1):
        ablated = logits(model)
    kept = attention.value_kernel.numpy()
    attention.value_kernel.assign(without_values(attention, 1))
    np.testing.assert_allclose(ablated, logits(model), atol=1e-5)
    # The other head gives something else.
    attention.value_kernel.assign(kept)
    with without_head(attention, 0):
        assert np.abs(logits(model) - ablated).max() > 1e-3
    np.testing.assert_array_equal(logits(model), before)
    assert np.abs(before - ablated).max() > 1e-3


def test_a_head_comes_back_after_an_error():
    model = drawn()
    attention = attentions_of(model)["cross"][0]
    before = attention.output_kernel.numpy()
    with pytest.raises(KeyError), without_head(attention, 0):
        raise KeyError
    np.testing.assert_array_equal(attention.output_kernel.numpy(), before)


def test_what_is_lost_is_the_score_with_all_heads_less_that_without_one():
    model = drawn()
    kernels = {name: found[0].output_kernel for name, found in attentions_of(model).items()}

    def score():
        return float(sum(np.abs(kernel.numpy()).sum() for kernel in kernels.values()))

    lost = losses(model, score)
    for name, kernel in kernels.items():
        rows = np.abs(kernel.numpy()).reshape(2, -1).sum(axis=-1)
        np.testing.assert_allclose(lost[name], [rows], rtol=1e-4)


@pytest.fixture(scope="module")
def translator(model, pieces):
    with eagerly():
        yield Translator(TranslationModule(model, pieces, DecodingOptions(beam_size=1)))


def test_a_survey_reads_each_sentence(translator):
    lines = ["a b", "c d e"]
    found = survey_of(translator, lines, ["b", "e d c"])
    one, other = (translator.attention(*pair)["encoder"] for pair in (("a b", "b"), ("c d e", "e")))
    rows = [np.diagonal(weights, axis1=-2, axis2=-1) for weights in (one, other)]
    mean = np.concatenate(rows, axis=-1).mean(axis=-1)
    np.testing.assert_allclose(found["on itself"]["encoder"], mean, rtol=1e-5)


def test_agreement_is_over_the_words_of_all_trees(translator):
    trees = [(["a", "b", "c"], [(0, 3), (1, 3)]), (["b", "a"], [(0, 2)])]
    agreed, chance = agreement_with(translator, trees)
    rows = []
    for words, spans in trees:
        weights = translator.attention(" ".join(words), "")["encoder"]
        # Each letter is a piece, and the last column is EOS.
        assert weights.shape[-1] == len(words) + 1
        rows.append(agreement(weights[..., :-1, :-1], together(len(words), spans)))
    np.testing.assert_allclose(agreed, np.concatenate(rows, axis=-1).mean(axis=-1))
    chances = [by_chance(together(len(words), spans)) for words, spans in trees]
    assert chance == pytest.approx(np.concatenate(chances).mean())
    with pytest.raises(ValueError, match="--trees must hold trees of at least two words"):
        agreement_with(translator, [(["a"], [])])


@pytest.mark.slow
def test_bleu_is_lost_by_the_head_that_is_off(model, pieces):
    """The model's own translations score 100, so that no head can be of harm."""
    with eagerly():
        search = {"max_length": "6"}
        whole = Translator(TranslationModule(model, pieces, DecodingOptions(beam_size=1, **search)))
        sources = ["a b c"]
        references = whole.translate(sources)

        def quality(answers):
            return bleu.score(answers, references)["bleu"]

        lost = points_lost((model, pieces, {}), "runs/a", sources, quality, search)
        assert {name: values.shape for name, values in lost.items()} == {
            "encoder": (1, 2),
            "decoder": (1, 2),
            "cross": (1, 2),
        }
        assert all((values >= 0).all() for values in lost.values())
        assert whole.translate(sources) == references


def test_a_stack_without_weights_between_positions_is_left_out(translator):
    given = translator.attention("a b", "b")
    said = []
    found = survey([given, {**given, "encoder": -given["encoder"]}], said.append)
    assert said == [
        "not measured, because it has no weights between positions: self-attention of the encoder"
    ]
    assert {tuple(stacks) for stacks in found.values()} == {("decoder", "cross")}
    whole = survey([given, given], said.append)
    assert "encoder" in whole["on itself"]  # A control.
    assert len(said) == 1


def test_a_parser_s_trees_hold_its_sentences(tmp_path):
    path = tmp_path / "my.trees"
    path.write_text("(TOP (S (NP-SBJ (-NONE- *)) (VP (VB Go) (. .))))\n(-NONE- *)\n")
    parser = {"task": "parsing"}
    sentences = (["Go ."], ["(TOP (S (VP (VB Go) (. .))))"])
    assert text_of(parser, "p", None, str(path)) == sentences
    # A control: a translator needs both files.
    with pytest.raises(ValueError, match="--source_file and --reference_file go together"):
        text_of({"task": "translation"}, "t", None, str(path))
    path.write_text("(-NONE- *)\n")
    with pytest.raises(ValueError, match=r"my\.trees holds no tree with words"):
        text_of(parser, "p", None, str(path))
