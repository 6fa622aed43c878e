"""A parser's module, with drawn weights: every output is a tree over the sentence's words."""

import pathlib
import types

import pytest
import tensorflow as tf
from drawn_models import random_model
from eager import eagerly
from tensorflow.core.protobuf import meta_graph_pb2
from written import escaped

from keras_transformer.decoding import DecodingOptions
from keras_transformer.inference import exported, functions
from keras_transformer.inference.loading import load_model
from keras_transformer.inference.translator import Translator
from keras_transformer.tasks.parsing.module import ParsingModule
from keras_transformer.tasks.translation.module import TranslationModule
from pipelines import corpora
from pipelines.corpora import Treebank, treebank
from pipelines.trees import parse
from pipelines.trees.linearization import LEAVES, to_symbols
from pipelines.vocabularies.vocabulary import learn

TREEBANK = pathlib.Path(__file__).parents[1] / "treebank"
LINES = ["The (", "x", " ", "1/2 bird", "A\u00a0bird\u3000sings", "\u00a0"]


@pytest.fixture(scope="module")
def both():
    """A parser and a translator of the same model."""
    corpus = corpora.load("treebank", data_dir=TREEBANK)
    vocabulary = learn(corpus.train.sources + corpus.train.targets, 400, corpus.tags)
    model = random_model(vocabulary_size=400)
    options = DecodingOptions(beam_size=2, num_hypotheses=2, max_length=6, min_length=1)
    return ParsingModule(model, vocabulary, options), TranslationModule(model, vocabulary, options)


@pytest.fixture(scope="module", autouse=True)
def without_graphs():
    with eagerly():
        yield


def test_whatever_the_model_writes_is_a_tree_over_the_words(both):
    parser, _ = map(Translator, both)
    details = parser.translate_in_detail(LINES)
    for line, hypotheses in zip(LINES, details, strict=True):
        assert len(hypotheses) == 2
        words = list(map(escaped, line.split()))
        for hypothesis in hypotheses:
            assert (parse(hypothesis.text).words if words else hypothesis.text) == (words or "")
    assert parser.translate(LINES) == [hypotheses[0].text for hypotheses in details]
    # A control: what the model wrote was no tree.
    assert not any(")S" in piece for hypotheses in details for piece in hypotheses[0].pieces)


def test_a_tree_is_scored_as_its_symbols(both):
    parser, translator = map(Translator, both)
    tree = parse("(S (NP (XX The) (XX cat)) (VP (XX sings)))")
    symbols = " ".join(to_symbols(tree))
    sentence = "The cat sings"
    [(log_probability, tokens)] = parser.score([sentence], [str(tree)])
    assert tokens == len(symbols.split()) + 1
    assert [(log_probability, tokens)] == translator.score([sentence], [symbols])
    assert [(log_probability, tokens)] == parser.score([sentence], [symbols])
    # A control: as text, brackets and words are other pieces.
    assert translator.score([sentence], [str(tree)])[0][1] > tokens


def test_an_export_counts_the_symbols_of_a_tree_too(both, monkeypatch):
    """It needs no run: the SavedModel is read as far as its signatures and its tokenizer."""
    parser, translator = both

    def lengths(output):
        model = types.SimpleNamespace(s=parser.vocabulary.model)
        node = types.SimpleNamespace(op="SentencepieceOp", attr={"model": model})
        string = meta_graph_pb2.TensorInfo(name="text:0", dtype=tf.string.as_datatype_enum)
        signature = meta_graph_pb2.SignatureDef(inputs={"text": string}, outputs={output: string})
        meta_graph = types.SimpleNamespace(
            signature_def={"serving_default": signature},
            graph_def=types.SimpleNamespace(node=[node]),
        )
        monkeypatch.setattr(functions, "read_meta_graph", lambda folder: meta_graph)
        return exported.Exported(pathlib.Path("here"), {}).target_lengths(trees)

    trees = ["(S (NP (XX The) (XX cat)) (VP (XX sings)))", "(S XX )S", ""]
    assert lengths("tree") == Translator(parser)._model.target_lengths(trees)
    # A control: a translator's references are text.
    assert lengths("translation") == Translator(translator)._model.target_lengths(trees)
    assert lengths("tree")[0] < lengths("translation")[0]


@pytest.fixture(scope="module", params=LEAVES)
def leaves(request):
    return request.param


@pytest.fixture(scope="module")
def constrained(leaves):
    """The module of a parser that can write only trees."""
    corpus = corpora.load("treebank", data_dir=TREEBANK, tree_leaves=leaves)
    vocabulary = learn(corpus.train.sources + corpus.train.targets, 420, corpus.tags)
    options = DecodingOptions(beam_size=2, constrained=True, max_length="+12")
    return ParsingModule(random_model(vocabulary_size=420), vocabulary, options)


def test_a_constrained_parser_writes_the_tree_itself(constrained, leaves):
    parser = Translator(constrained)
    details = parser.translate_in_detail(LINES)
    training_labels = {
        leaf.label
        for gold in Treebank(data_dir=str(TREEBANK)).trees("train")
        for leaf in gold.preterminals()
    }
    trees = [hypothesis.text for [hypothesis] in details]
    scored = parser.score(LINES, trees)
    labels = set()
    for line, [hypothesis], (_, tokens) in zip(LINES, details, scored, strict=True):
        if not line.strip():
            continue
        tree = parse(hypothesis.text)
        assert tree.words == list(map(escaped, line.split()))
        labels |= {leaf.label for leaf in tree.preterminals()}
        # The tree was not mended: its symbols are the pieces of the search.
        assert tokens == len(hypothesis.pieces)
        assert ("".join(hypothesis.pieces).count("XX") == 0) == (leaves == "words")
    assert labels <= training_labels if leaves == "parts_of_speech" else labels == {"XX"}
    assert len(labels) > 1 or leaves != "parts_of_speech"


def test_any_white_space_parts_words(constrained, leaves):
    """The source and the search's leaves count the same words as the mending of trees."""
    texts = [
        "The dog sees",
        "The\tdog  sees\n",
        " The\x0bdog\r\nsees",
        "The\u00a0dog\u3000\x85sees\u2028",
    ]
    outputs = constrained._leaves(tf.constant(texts))
    names = ["count", "leaves"] if leaves == "words" else ["count"]
    for ids in (constrained.source_ids(texts), *(outputs[name] for name in names)):
        expected, *variants = ids.numpy().tolist()
        assert variants == [expected] * 3


def test_leaves_are_scored_too_and_tags_only_where_they_are_written(constrained, leaves):
    parser = Translator(constrained)
    [gold, *_] = Treebank(data_dir=str(TREEBANK)).trees("test")
    sentence = treebank.words_of(gold)
    [(log_probability, tokens)] = parser.score([sentence], [str(gold)])
    symbols = " ".join(to_symbols(gold, leaves))
    assert parser.score([sentence], [symbols]) == [(log_probability, tokens)]
    retagged = str(gold).replace("(DT ", "(NN ")
    differs = parser.score([sentence], [retagged])[0][0] != log_probability
    assert differs == (leaves == "parts_of_speech")


def test_a_translator_refuses_the_option(both):
    _, translator = both
    with pytest.raises(ValueError, match=r"^`constrained` is for parsers.*constrained=True\."):
        TranslationModule(
            translator._graphs.model, translator.vocabulary, DecodingOptions(constrained=True)
        )
    with pytest.raises(ValueError, match=r"^constrained=True and no_repeat_ngram_size=2 exclude"):
        DecodingOptions(constrained=True, no_repeat_ngram_size=2)


def test_the_signatures_give_trees(both):
    functions = both[0].functions()
    assert list(functions["serving_default"](["a b"])) == ["tree"]
    nbest = functions["nbest"](["a b"])
    assert list(nbest) == ["trees", "scores"]
    for tree in nbest["trees"].numpy().ravel():
        assert parse(tree.decode()).words == ["a", "b"]


def test_a_run_of_an_unknown_task_is_refused(tmp_path):
    (tmp_path / "model.json").write_text('{"task": "drawing"}', encoding="utf-8")
    message = r"of the task translation or parsing\. Received: one of the task drawing"
    with pytest.raises(ValueError, match=message):
        load_model(str(tmp_path), "float32", {})
