"""Trees out of a parser that has learned nothing: 100 % are well formed, mended or constrained."""

import pathlib
import random

import pytest
from drawn_models import drawn
from eager import eagerly

from keras_transformer.decoding import DecodingOptions
from keras_transformer.inference.translator import Translator
from keras_transformer.tasks.parsing.module import ParsingModule
from keras_transformer.tasks.translation.module import TranslationModule
from pipelines import corpora
from pipelines.trees import escaped, parse
from pipelines.trees.linearization import LEAVES, WORD, to_symbols
from pipelines.vocabularies import vocabulary

TREEBANK = pathlib.Path(__file__).parents[1] / "treebank"
END = "</s>"


@pytest.fixture(scope="module", params=LEAVES)
def leaves(request):
    """What stands for a word in a tree."""
    return request.param


@pytest.fixture(scope="module")
def text(leaves):
    return corpora.load("treebank", data_dir=TREEBANK, tree_leaves=leaves)


@pytest.fixture(scope="module")
def pieces(text):
    return vocabulary.learn([*text.train.sources, *text.train.targets], 420, text.tags)


@pytest.fixture(scope="module")
def model(pieces):
    return drawn(vocabulary_size=pieces.size)


def sentences_of(text, count):
    """Sentences of 1 to 12 words of a treebank, in any order."""
    draw = random.Random(1)
    words = [word for line in text.train.sources for word in line.split(" ")]
    return [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(count)]


def parsed(model, pieces, sentences, **options):
    """For each sentence its tree and the symbols that the model wrote."""
    options = DecodingOptions(**{"max_length": "+20"} | options)
    found = Translator(ParsingModule(model, pieces, options)).translate_in_detail(sentences)
    for hypotheses in found:
        text = "".join(hypotheses[0].pieces).removesuffix(END)
        yield parse(hypotheses[0].text), text.replace("\u2581", " ").strip(" ").split(" ")


def assert_over_the_words(tree, sentence, leaves):
    assert tree.words == [escaped(word) for word in sentence.split(" ")]
    if leaves != "parts_of_speech":
        assert {leaf.label for leaf in tree.preterminals()} == {WORD}


def assert_all_well_formed(model, pieces, sentences, leaves, **options):
    mended = list(parsed(model, pieces, sentences, **options))
    constrained = list(parsed(model, pieces, sentences, constrained=True, **options))
    for (tree, written), (_, as_mended), sentence in zip(
        constrained, mended, sentences, strict=True
    ):
        assert_over_the_words(tree, sentence, leaves)
        assert written == to_symbols(tree, leaves)
        assert written != as_mended
    for (tree, _), sentence in zip(mended, sentences, strict=True):
        assert_over_the_words(tree, sentence, leaves)
    # The control: what needs no mending is rare.
    assert sum(written == to_symbols(tree, leaves) for tree, written in mended) < (
        len(sentences) / 100
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{"beam_size": 1}, {"beam_size": 4}, {"samples": 1, "temperature": 0.5}],
    ids=["greedy", "beam of 4", "sampling"],
)
def test_a_thousand_sentences(text, model, pieces, leaves, options):
    assert_all_well_formed(model, pieces, sentences_of(text, 1000), leaves, **options)


def test_a_few_sentences_and_a_blank_line(model, pieces, leaves):
    options = DecodingOptions(1, max_length=9, constrained=True)
    with eagerly():
        blank, *trees = Translator(ParsingModule(model, pieces, options)).translate(
            [" ", "( b", "c"]
        )
    assert blank == ""
    assert_over_the_words(parse(trees[0]), "( b", leaves)
    assert_over_the_words(parse(trees[1]), "c", leaves)


def test_a_translator_refuses_the_option(model, pieces):
    with pytest.raises(ValueError, match=r"^`constrained` is for parsers.*constrained=True\."):
        TranslationModule(model, pieces, DecodingOptions(constrained=True))
    with pytest.raises(ValueError, match=r"^constrained=True and no_repeat_ngram_size=2 exclude"):
        DecodingOptions(constrained=True, no_repeat_ngram_size=2)
