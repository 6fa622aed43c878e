"""Heads of a model: switched off one at a time, surveyed, compared with trees; what rows and
columns of their attention are called, and which weights can be drawn.
"""

import itertools
import json
import math
import types

import numpy as np
import pytest
from drawn_models import random_model
from small_model import eagerly

from keras_transformer.decoding import DecodingOptions
from keras_transformer.evaluation import metrics
from keras_transformer.inference.translator import Translator
from keras_transformer.layers import LinearHeads, LowRankHeads, MultiHeadAttention, SoftmaxHeads
from keras_transformer.tasks.translation.module import TranslationModule
from keras_transformer.visualization.attended import (
    Attended,
    between_words,
    require_shares,
    words_of,
)
from keras_transformer.visualization.head_maps import Heads, agreement_with, points_lost, table
from keras_transformer.visualization.head_measures import (
    MEASURES,
    agreement,
    attentions_of,
    by_chance,
    losses,
    read_phrases,
    survey,
    together,
    without_head,
)
from pipelines.special_ids import EOS
from pipelines.vocabularies.other_order import in_order
from pipelines.vocabularies.vocabulary import Vocabulary

SOURCE = np.array([[5, 6, 7, 3]])
TARGET = np.array([[2, 9, 8]])


def logits(model):
    return np.array(model((SOURCE, TARGET)))


@pytest.mark.parametrize("stack", ["encoder", "decoder", "cross"])
def test_a_head_that_is_switched_off_gives_zeros(stack, model):
    [attention] = attentions_of(model)[stack]
    before = logits(model)
    with without_head(attention, 1):
        ablated = logits(model)
    kernel = attention.value_kernel.numpy()
    # If a head's columns of the value kernel are zero, its output is zero.
    zeroed = kernel.copy()
    zeroed[:, attention.d_v : 2 * attention.d_v] = 0
    attention.value_kernel.assign(zeroed)
    np.testing.assert_allclose(ablated, logits(model), atol=1e-5)
    # A control: without the other head the logits differ.
    attention.value_kernel.assign(kernel)
    with without_head(attention, 0):
        assert np.abs(logits(model) - ablated).max() > 1e-3
    # The head is restored, after an error too.
    with pytest.raises(KeyError), without_head(attention, 0):
        raise KeyError
    np.testing.assert_array_equal(logits(model), before)
    assert np.abs(before - ablated).max() > 1e-3


def test_what_a_head_loses_is_the_score_with_all_heads_less_that_without_it():
    model = random_model()
    kernels = {name: layers[0].output_kernel for name, layers in attentions_of(model).items()}

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


@pytest.fixture(scope="module")
def labelled(pieces):
    """A translator with a label of the language before the text."""
    own = [*pieces.pieces[EOS + 1 :], "__en__"]
    vocabulary = Vocabulary(in_order(pieces.model, own, labels=own[-1:])[0])
    options = DecodingOptions(beam_size=1, source_language="en", target_language="en")
    with eagerly():
        model = random_model(vocabulary_size=vocabulary.size)
        yield Translator(TranslationModule(model, vocabulary, options))


@pytest.mark.parametrize(("name", "labels"), [("translator", 0), ("labelled", 1)])
def test_agreement_is_over_the_words_of_all_trees(name, labels, request):
    translator = request.getfixturevalue(name)
    trees = [(["a", "b", "c"], [(0, 3), (1, 3)]), (["b", "a"], [(0, 2)])]
    agreed, chance = agreement_with(translator, trees)
    rows = []
    for words, spans in trees:
        weights = translator.attention(" ".join(words), "")["encoder"]
        # Each letter is a piece, and the last column is EOS.
        assert weights.shape[-1] == labels + len(words) + 1
        weights = weights[..., labels:-1, labels:-1]
        rows.append(agreement(weights, together(len(words), spans)))
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
            return metrics.score(answers, references)["bleu"]

        lost = points_lost((model, pieces, {}), sources, quality, search)
        shapes = {name: values.shape for name, values in lost.items()}
        assert shapes == dict.fromkeys(("encoder", "decoder", "cross"), (1, 2))
        assert all((values >= 0).all() for values in lost.values())
        assert whole.translate(sources) == references


def test_a_stack_without_weights_between_positions_is_left_out(translator, capsys):
    weights = translator.attention("a b", "b")
    means = survey([weights, {**weights, "encoder": -weights["encoder"]}])
    assert capsys.readouterr().out == (
        "not measured, because it has no weights between positions: self-attention of the encoder\n"
    )
    assert {tuple(stacks) for stacks in means.values()} == {("decoder", "cross")}
    whole = survey([weights, weights])
    assert "encoder" in whole["on itself"]  # A control.
    assert capsys.readouterr().out == ""


def test_a_parser_s_heads_are_measured_on_its_trees(tmp_path, monkeypatch):
    """On whole ones: among the symbols that it learns, words that are brackets are missing."""
    tree = "(S (-LRB- -LRB-) (VB Go))"
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.trees").write_text(f"{tree}\n")
    corpus = {"name": "treebank", "data_dir": str(tmp_path), "tree_leaves": "words"}
    description = {"task": "parsing", "corpus": corpus}
    (tmp_path / "model.json").write_text(json.dumps(description))
    pairs = []

    def attention(*pair):
        pairs.append(pair)
        return {"encoder": np.ones((1, 1, 1, 1))}

    translator = types.SimpleNamespace(attention=attention, description=description)
    monkeypatch.setattr(Translator, "load", lambda _: translator)
    Heads().measure(str(tmp_path), {})
    assert pairs == [("( Go", tree)]
    # A translator needs both files.
    (tmp_path / "model.json").write_text(json.dumps({"task": "translation"}))
    translator.description = {"task": "translation"}
    with pytest.raises(ValueError, match="--source_file and --reference_file go together"):
        Heads(reference_file="a.en").measure(str(tmp_path), {})


# What heads do: measures by hand, means over many sentences, agreement with trees.
def shares(random, *shape):
    return random.dirichlet(np.ones(shape[-1]), size=shape[:-1])


def by_loops(weights):
    """Each measure of weights (T, S), for rows whose edge is the last column."""
    rows, columns = weights.shape
    measures = {name: [] for name in MEASURES}
    for t in range(rows):
        row = [float(value) for value in weights[t]]
        measures["distance"].append(sum(row[s] * abs(s - t) for s in range(columns)))
        measures["entropy"].append(-sum(w * math.log(w) for w in row if w > 0))
        measures["on EOS, start"].append(row[-1])
        for name, place in (("on itself", t), ("on previous", t - 1), ("on next", t + 1)):
            measures[name].append(row[place] if 0 <= place < columns else 0.0)
    return measures


@pytest.mark.parametrize("shape", [(4, 4), (3, 6), (6, 3), (1, 1)])
def test_measures_are_what_loops_give(shape):
    weights = shares(np.random.default_rng(1), *shape)
    weights[0] = np.eye(shape[1])[0]
    expected = by_loops(weights)
    for name, measure in MEASURES.items():
        np.testing.assert_allclose(measure(weights, "cross"), expected[name], atol=1e-12)


def test_a_decoder_s_edge_is_its_start():
    causal = np.tril(np.ones((4, 4)))
    causal /= causal.sum(axis=-1, keepdims=True)
    measure = MEASURES["on EOS, start"]
    np.testing.assert_allclose(measure(causal, "decoder"), 1 / np.arange(1, 5))
    np.testing.assert_allclose(measure(causal, "encoder"), [0, 0, 0, 1 / 4])


def test_a_survey_is_the_mean_over_all_rows():
    random = np.random.default_rng(3)
    sizes = [(3, 5), (6, 2), (4, 4)]
    sentences = [
        {
            "encoder": shares(random, 2, 3, source, source),
            "decoder": shares(random, 2, 3, target, target),
            "cross": shares(random, 2, 3, target, source),
        }
        for source, target in sizes
    ]
    with pytest.raises(ValueError, match="no sentence to measure heads on"):
        survey([])
    means = survey(sentences)
    for head in np.ndindex(2, 3):
        rows = [by_loops(sentence["cross"][head]) for sentence in sentences]
        for name in MEASURES:
            mean = np.mean([value for measures in rows for value in measures[name]])
            np.testing.assert_allclose(means[name]["cross"][head], mean)
    # A model without self-attention is surveyed by what it has.
    alone = survey([{"cross": sentence["cross"]} for sentence in sentences])
    assert {(*stacks,) for stacks in alone.values()} == {("cross",)}
    np.testing.assert_array_equal(alone["entropy"]["cross"], means["entropy"]["cross"])
    assert [row[0] for row in table(alone)[1:4]] == ["cross 1.1", "cross 1.2", "cross 1.3"]


def test_the_table_has_a_row_for_each_head():
    measures = {
        "entropy": {name: np.full((1, 2), 0.5) for name in ("encoder", "decoder", "cross")},
        "in its phrase": {"encoder": np.array([[0.25, 1.0]])},
    }
    rows = table(measures)
    assert rows[0] == ["head", "entropy", "in its phrase"]
    assert rows[1:4] == [
        ["encoder 1.1", "0.50", "0.25"],
        ["encoder 1.2", "0.50", "1.00"],
        ["decoder 1.1", "0.50", "-"],
    ]
    assert len(rows) == 7


TREE = "( (S (NP (DT The) (NN cat)) (VP (VBZ sits) (PP (IN on) (NP (PRP it)))) (. .)) )"
WORDS = ["The", "cat", "sits", "on", "it", "."]
SPANS = [(0, 2), (0, 6), (2, 5), (3, 5)]


def test_traces_are_no_words_and_brackets_are_as_in_the_text(tmp_path):
    path = tmp_path / "some.trees"
    line = "(S (NP (-NONE- *)) (VP (VB Go) (PRN (-LRB- -LRB-) (RB now) (-RRB- -RRB-))))"
    path.write_text(f"{line}\n\n(S (-NONE- *))\n{TREE}\n{TREE}\n", encoding="utf-8")
    assert read_phrases(path, 3) == [(["Go", "(", "now", ")"], [(0, 4), (1, 4)]), (WORDS, SPANS)]


def test_words_belong_together_in_the_smallest_constituent():
    belongs = together(len(WORDS), SPANS)
    for word, partner in itertools.product(range(len(WORDS)), repeat=2):
        holding = [span for span in SPANS if word in range(*span)]
        smallest = min(holding, key=lambda span: span[1] - span[0])
        assert belongs[word, partner] == (word != partner and partner in range(*smallest))
    assert belongs[4].tolist() == [False, False, False, True, False, False]


def test_a_head_that_stays_in_its_phrase_agrees_and_one_that_leaves_it_does_not():
    belongs = together(len(WORDS), SPANS)
    # Attention to oneself does not count, however strong.
    inside = 0.1 * belongs + 0.9 * np.eye(6)
    assert agreement(np.stack([inside, 1.0 - belongs]), belongs).mean(axis=-1).tolist() == [
        1.0,
        1 / 6,  # The full stop's phrase is the sentence, which it cannot leave.
    ]


def test_chance_is_the_mean_over_all_choices():
    belongs = together(len(WORDS), SPANS)
    random = np.random.default_rng(1)
    mean = agreement(random.random((20_000, 6, 6)), belongs).mean(axis=0)
    np.testing.assert_allclose(by_chance(belongs), mean, atol=0.02)


# What rows and columns of attention are called, and which weights can be drawn.
@pytest.fixture
def attention():
    random = np.random.default_rng(1)
    return {
        "source_pieces": ["▁hou", "se", "</s>"],
        "target_pieces": ["▁das", "▁Ha", "us", "</s>"],
        "encoder": shares(random, 2, 4, 3, 3),
        "decoder": shares(random, 2, 4, 4, 4),
        "cross": shares(random, 2, 4, 4, 3),
    }


@pytest.mark.parametrize(
    ("stack", "by_pieces", "rows", "columns"),
    [
        ("encoder", False, ["house", "(end)"], ["house", "(end)"]),
        ("cross", False, ["das", "Haus", "(end)"], ["house", "(end)"]),
        ("decoder", False, ["das", "Haus", "(end)"], ["(start)", "das", "Haus"]),
        ("decoder", True, ["▁das", "▁Ha", "us", "(end)"], ["(start)", "▁das", "▁Ha", "us"]),
    ],
)
def test_rows_are_written_and_columns_are_read(attention, stack, by_pieces, rows, columns):
    attended = Attended.of(attention, stack, by_pieces)
    assert (attended.rows, attended.columns) == (rows, columns)
    assert attended.weights.shape == (2, 4, len(rows), len(columns))
    np.testing.assert_allclose(attended.weights.sum(axis=-1), 1)


def test_the_default_stack_is_the_last_one(attention):
    assert Attended.of(attention, None).stack == "cross"
    del attention["cross"], attention["decoder"]
    assert Attended.of(attention, None).stack == "encoder"
    with pytest.raises(ValueError, match=r"Received: --stack=cross\. Try --stack=encoder\."):
        Attended.of(attention, "cross")


@pytest.mark.parametrize(
    ("heads", "has_shares"),
    [(SoftmaxHeads(), True), (LinearHeads(), True), (LowRankHeads(2, max_positions=8), False)],
)
def test_weights_that_are_no_shares_are_refused(heads, has_shares):
    """Linear attention's features are all positive, so that its weights are shares too."""
    x = np.random.default_rng(1).normal(size=(1, 5, 8)).astype("float32")
    layer = MultiHeadAttention(num_heads=2, d_model=8, heads=heads)
    layer.build(x.shape, x.shape, x.shape)
    _, weights = layer.with_attention(x, x, x)
    if has_shares:
        assert require_shares(np.asarray(weights), "encoder") is None
        return
    with pytest.raises(ValueError, match="self-attention of the encoder has no weights between"):
        require_shares(np.asarray(weights), "encoder")


@pytest.mark.parametrize(("layers", "number", "index"), [(6, None, 4), (1, None, 0), (6, 6, 5)])
def test_the_layer_is_the_last_but_one_unless_it_is_given(layers, number, index):
    assert Attended("cross", [], [], np.zeros((layers, 2, 1, 1))).layer(number) == index


def test_an_absent_layer_or_head_is_refused():
    attended = Attended("cross", [], [], np.zeros((3, 2, 1, 1)))
    assert attended.heads([]) == [0, 1]
    assert attended.heads(["2"]) == attended.heads(["2", "2"]) == [1]
    with pytest.raises(ValueError, match=r"--layer must be in 1 to 3.* Received: --layer=4"):
        attended.layer(4)
    for wrong in (["3"], ["0"], ["1", "x"]):
        with pytest.raises(ValueError, match="--heads must be numbers in 1 to 2, joined by commas"):
            attended.heads(wrong)


def test_another_stack_is_advised_only_where_there_is_one(attention):
    attention["encoder"] = -attention["encoder"]
    with pytest.raises(ValueError, match=r"not sum to 1\. Try --stack=cross\.$"):
        Attended.of(attention, "encoder")
    del attention["cross"], attention["decoder"]
    with pytest.raises(ValueError, match=r"not sum to 1\.$"):
        Attended.of(attention, None)


PIECES = ["▁the", "▁hou", "se", "▁burns", ".", "</s>"]


@pytest.mark.parametrize(
    ("pieces", "words", "numbers"),
    [
        (PIECES, ["the", "house", "burns.", "(end)"], [0, 1, 1, 2, 2, 3]),
        (["<s>", "das", "▁Haus"], ["(start)", "das", "Haus"], [0, 1, 2]),
        (["▁S", "<0xC3>", "<0xA9>", "</s>"], ["Sé", "(end)"], [0, 0, 0, 1]),
        (["▁", "▁a"], ["▁", "a"], [0, 1]),
        (["</s>"], ["(end)"], [0]),
        (["▁a<0xC3>"], ["a\ufffd"], [0]),
        (
            ["[CLS]", "the", "lamp", "##s", ".", "[SEP]"],
            ["(start)", "the", "lamps", ".", "(end)"],
            [0, 1, 2, 2, 3, 4],
        ),
    ],
)
def test_pieces_make_words(pieces, words, numbers):
    assert words_of(pieces) == (words, numbers)


def test_a_word_gets_the_sum_and_gives_the_mean_of_its_pieces():
    random = np.random.default_rng(1)
    attention = random.dirichlet(np.ones(6), size=(2, 3, 5))
    rows, columns = ([0, 0, 1, 2, 2], [0, 1, 1, 2, 2, 3])
    weights = between_words(attention, rows, columns)
    assert weights.shape == (2, 3, 3, 4)
    for row in range(3):
        for column in range(4):
            of_row = [t for t, word in enumerate(rows) if word == row]
            of_column = [s for s, word in enumerate(columns) if word == column]
            sums = [attention[..., t, of_column].sum(axis=-1) for t in of_row]
            np.testing.assert_allclose(weights[..., row, column], np.mean(sums, axis=0))
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
