"""The trees that a parser is measured by are those of the pairs, of mixtures too."""

import json
import pathlib

import pytest

from pipelines import corpora
from pipelines.corpora import Treebank, treebank
from pipelines.trees.linearization import LEAVES, to_symbols

TREEBANK = pathlib.Path(__file__).parents[2] / "treebank"
MEMBER = {"corpus": "treebank", "source_language": "en", "target_language": "trees"}
SILVER = ["(S (NP (XX Birds)) (VP (XX sing)))", "(TOP (S (XX Go)))"]


@pytest.fixture
def mixed(tmp_path):
    """A function of keywords of a second member: settings of a mixture with trees of a parser."""
    (tmp_path / "silver.trees").write_text("\n".join(SILVER), encoding="utf-8")

    def settings(**second):
        silver = {**MEMBER, "data_dir": ".", "prefixes": ["silver", None, None], "weight": 0.5}
        said = [{**MEMBER, "data_dir": str(TREEBANK)}, {**silver, **second}]
        file = tmp_path / "mixture.json"
        file.write_text(json.dumps({"corpora": said}), encoding="utf-8")
        return {"name": "mixture", "mixture": str(file), "prefixes": ["a", "b", "c"]}

    return settings


def load(settings):
    languages = {"source_language": "en", "target_language": "trees"}
    return corpora.load(settings["name"], mixture=settings["mixture"], **languages)


def test_a_mixture_has_the_symbols_and_the_weights_of_its_treebanks(mixed):
    corpus = load(mixed())
    gold = corpora.load("treebank", data_dir=TREEBANK)
    assert corpus.tags == (*gold.tags, "▁(TOP", "▁)TOP")
    assert corpus.train.sources == [*gold.train.sources, "Birds sing", "Go"]
    assert corpus.train.targets[-1] == "(TOP (S XX )S )TOP"
    assert corpus.weights.tolist() == [1.0] * len(gold.train) + [0.5] * 2
    assert (corpus.valid, corpus.test) == (gold.valid, gold.test)


@pytest.mark.parametrize("split", treebank.SPLITS)
def test_there_is_a_tree_for_each_pair(mixed, split):
    settings = mixed(prefixes=["silver", None, "silver"])
    treebank.treebanks_of(settings)
    found = treebank.gold_trees(settings, split)
    text = getattr(load(settings), split)
    assert list(map(treebank.words_of, found)) == text.sources
    assert [" ".join(to_symbols(tree)) for tree in found] == text.targets


@pytest.mark.parametrize("leaves", LEAVES)
def test_there_is_a_tree_for_each_pair_whatever_its_leaves(tmp_path, leaves):
    """Long words make a line too long for a pair only where they are its leaves."""
    long = f"(S (N {'x' * 60_000}) (N {'y' * 39_997}))"
    for split in treebank.SPLITS:
        (tmp_path / f"{split}.trees").write_text(f"{SILVER[0]}\n{long}\n", encoding="utf-8")
    settings = {"name": "treebank", "data_dir": str(tmp_path), "tree_leaves": leaves}
    found = treebank.gold_trees(settings, "test")
    text = corpora.load("treebank", data_dir=tmp_path, tree_leaves=leaves).test
    assert [" ".join(to_symbols(tree, leaves)) for tree in found] == text.targets
    assert len(found) == (1 if leaves == "words" else 2)


def test_the_trees_of_a_treebank_are_its_own():
    settings = {
        "name": "treebank",
        "data_dir": str(TREEBANK),
        "prefixes": ["test", "train", "valid"],
    }
    treebank.treebanks_of(settings)
    assert treebank.gold_trees(settings, "train") == Treebank(data_dir=str(TREEBANK)).trees("test")


def test_what_is_no_treebank_is_refused(mixed):
    with pytest.raises(
        ValueError, match=r"^--task=parsing learns from trees\. Received: corpus=re"
    ):
        treebank.treebanks_of({"name": "reverse"})
    for wrong in ({"tag": "<silver>"}, {"corpus": "text_files"}):
        with pytest.raises(
            ValueError, match=r"mixture\.json, member 2: a parser learns from treeb"
        ):
            treebank.treebanks_of(mixed(**wrong))


def test_other_prefixes_than_three_names_are_refused(mixed):
    wrong = {"prefixes` must name": ["silver", None], "test_prefix` must be a s": ["a", None, 1]}
    for told, prefixes in {**wrong, "prefixes` must be said": None}.items():
        with pytest.raises(ValueError, match=f"member 2: `{told}"):
            load(mixed(prefixes=prefixes))


def test_an_empty_name_is_not_no_trees(mixed):
    settings = {"name": "treebank", "data_dir": str(TREEBANK), "prefixes": ["train", "valid", ""]}
    with pytest.raises(ValueError, match=r"`prefixes` must name three splits"):
        treebank.gold_trees(settings, "test")
    with pytest.raises(ValueError, match=r"member 2: `prefixes` must name three splits"):
        load(mixed(prefixes=["silver", "", "silver"]))


def test_a_treebank_may_be_there_to_be_tested_on_alone(mixed):
    settings = mixed(prefixes=[None, None, "silver"])
    assert load(settings).train == corpora.load("treebank", data_dir=TREEBANK).train
    assert len(treebank.gold_trees(settings, "test")) == 8 + len(SILVER)
