"""Trees from files: a parser's training pairs, its gold trees, and messages about broken trees."""

import json
import pathlib

import pytest

from pipelines import corpora
from pipelines.corpora import Treebank, treebank
from pipelines.dropped import Dropped
from pipelines.trees.linearization import LEAVES, to_symbols
from pipelines.vocabularies.vocabulary import learn

GO = "( (S (NP-SBJ (-NONE- *)) (VP (VB Go) (NP (NN home))) (. .)) )"
CALL = r"(S (NP-SBJ-1 (PRP I)) (VP (VBP call) (NP (CD 1\/2) (-LRB- -LRB-) (NN it) (-RRB- -RRB-))))"
NOTHING = "( (S (-NONE- *)) )"


def write(folder, **lines):
    """A treebank of one tree a split, with some splits replaced."""
    for prefix in ("train", "valid", "test"):
        text = "\n".join(lines.get(prefix, [GO]))
        (folder / f"{prefix}.trees").write_text(text, encoding="utf-8")
    return folder


def load(folder, **arguments):
    return corpora.load("treebank", data_dir=folder, **arguments)


def test_a_sentence_is_translated_into_symbols(tmp_path):
    corpus = load(write(tmp_path, train=[GO, "", CALL]))
    assert corpus.train.sources == ["Go home .", "I call 1/2 ( it )"]
    expected = ["(S (VP XX (NP XX )NP )VP XX )S", "(S (NP XX )NP (VP XX (NP XX XX XX XX )NP )VP )S"]
    assert corpus.train.targets == expected
    assert (corpus.source_language, corpus.target_language) == ("en", "trees")


@pytest.mark.parametrize(
    ("leaves", "symbols"),
    [
        ("parts_of_speech", "XX-PRP )NP (VP XX-VBP (NP XX-CD XX--LRB- XX-NN XX--RRB-"),
        ("words", "I )NP (VP call (NP 1/2 ( XX )"),
    ],
)
def test_parts_of_speech_or_words_are_kept_if_asked_for(tmp_path, leaves, symbols):
    corpus = load(write(tmp_path, train=[CALL.replace("it", "XX")]), tree_leaves=leaves)
    assert corpus.train.targets == [f"(S (NP {symbols} )NP )VP )S"]
    words = corpus.train.sources[0].split(" ") if leaves == "words" else []
    tags = set(corpus.train.targets[0].split(" ")) - set(words)
    assert set(corpus.tags) == {"\u2581" + tag for tag in tags}


def test_a_tree_may_span_lines_and_parts_of_a_damaged_tree_are_dropped(tmp_path):
    whole = [*GO.replace(" (VP", "\n    (VP").splitlines(), CALL]
    assert len(load(write(tmp_path, train=whole)).train) == 2
    # After the bracket too many in line 2, lines 3 and 4 would look like a tree.
    broken = ["(S", "  (NP (N a)))", "  (VP (V b))", ")", GO]
    assert load(write(tmp_path, train=broken)).train.sources == ["Go home ."]


@pytest.mark.parametrize("leaves", ["xx", "parts_of_speech"])
def test_each_symbol_is_one_piece_and_is_restored(tmp_path, leaves):
    corpus = load(write(tmp_path, train=[GO, CALL]), tree_leaves=leaves)
    vocabulary = learn(corpus.train.sources + corpus.train.targets, 300, corpus.tags)
    for line in corpus.train.targets:
        ids = vocabulary.tokenize([line])
        assert ids.row_lengths().numpy().tolist() == [len(line.split(" ")) + 1]
        assert vocabulary.detokenize(ids).numpy().tolist() == [line.encode()]


def test_damaged_trees_are_dropped_and_counted_with_their_first_lines(tmp_path):
    """Parsers write `(())` for a sentence that they cannot parse."""
    broken = [GO, "(())", CALL, "(S (N a)", GO, "(S (N a)))", "word", "(S a b)", "( () )", NOTHING]
    folder = write(tmp_path, train=broken)
    corpus = load(folder)
    assert corpus.train.sources == ["Go home .", "I call 1/2 ( it )", "Go home ."]
    assert corpus.train.place(2, "") == f"{folder}/train.trees, line 5"
    reasons = {"empty bracket": (2, 2), "unclosed bracket": (1, 4), "unopened bracket": (1, 6)}
    reasons |= {"word outside brackets": (1, 7), "word beside others": (1, 8), "empty": (1, 10)}
    assert corpus.dropped == {reason: count for reason, (count, _) in reasons.items()}
    lines = {reason: f"{folder}/train.trees, line {line}" for reason, (_, line) in reasons.items()}
    assert corpus.dropped.firsts == lines
    summary = corpus.dropped.describe()
    assert summary.startswith(f"2 empty bracket (first: {folder}/train.trees, line 2), 1 unclosed")
    assert len(Treebank(data_dir=str(folder)).trees("train")) == 3
    with pytest.raises(ValueError, match=r"train\.trees, line 2: the bracket \( that token 3 clo"):
        load(folder, strict=True)
    with pytest.raises(ValueError, match=r"train\.trees holds no tree with words"):
        load(write(tmp_path, train=[NOTHING]))
    with pytest.raises(ValueError, match=r"train\.trees, line 2: empty\. Correct it, or leave"):
        load(write(tmp_path, train=[GO, NOTHING]), strict=True)
    # Controls: good trees are not refused; a file of gold trees must be flawless.
    assert load(write(tmp_path), strict=True).dropped == {}
    (tmp_path / "train.trees").write_text("\n".join(broken))
    with pytest.raises(ValueError, match=r"train\.trees, line 2"):
        list(treebank.read_trees(tmp_path / "train.trees"))


TREEBANK = pathlib.Path(__file__).parents[2] / "treebank"
MEMBER = {"corpus": "treebank", "source_language": "en", "target_language": "trees"}
SILVER = ["(S (NP (XX Birds)) (VP (XX sing)))", "(TOP (S (XX Go)))"]


@pytest.fixture
def mixed(tmp_path):
    """A function from the options of a second member to settings of a mixture of treebanks."""
    for name in ("silver", "others"):
        (tmp_path / f"{name}.trees").write_text("\n".join(SILVER), encoding="utf-8")

    def settings(**second):
        silver = {**MEMBER, "data_dir": ".", "prefixes": ["silver", None, None], "weight": 0.5}
        members = [{**MEMBER, "data_dir": str(TREEBANK)}, {**silver, **second}]
        file = tmp_path / "mixture.json"
        file.write_text(json.dumps({"corpora": members}), encoding="utf-8")
        return {"name": "mixture", "mixture": str(file), "prefixes": ["a", "b", "c"]}

    return settings


def load_mixture(settings):
    languages = {"source_language": "en", "target_language": "trees"}
    return corpora.load(settings["name"], mixture=settings["mixture"], **languages)


def test_a_mixture_has_the_symbols_and_the_weights_of_its_treebanks(mixed):
    corpus = load_mixture(mixed())
    gold = corpora.load("treebank", data_dir=TREEBANK)
    assert corpus.tags == (*gold.tags, "▁(TOP", "▁)TOP")
    assert corpus.train.sources == [*gold.train.sources, "Birds sing", "Go"]
    assert corpus.train.targets[-1] == "(TOP (S XX )S )TOP"
    assert corpus.weights.tolist() == [1.0] * len(gold.train) + [0.5] * 2
    assert (corpus.valid, corpus.test) == (gold.valid, gold.test)


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_there_is_a_gold_tree_for_each_pair(mixed, split):
    settings = mixed(prefixes=["silver", None, "others"])
    treebank.treebanks_of(settings)
    trees = treebank.gold_trees(settings, split)
    text = getattr(load_mixture(settings), split)
    assert list(map(treebank.words_of, trees)) == text.sources
    assert [" ".join(to_symbols(tree)) for tree in trees] == text.targets


@pytest.mark.parametrize("leaves", LEAVES)
def test_there_is_a_gold_tree_for_each_pair_whatever_its_leaves(tmp_path, leaves):
    """Long words make the target line of a pair too long only where they are leaves of it."""
    long = f"(S (N {'x' * 60_000}) (N {'y' * 39_997}))"
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.trees").write_text(f"{SILVER[0]}\n{long}\n", encoding="utf-8")
    settings = {"name": "treebank", "data_dir": str(tmp_path), "tree_leaves": leaves}
    trees = treebank.gold_trees(settings, "test")
    text = corpora.load("treebank", data_dir=tmp_path, tree_leaves=leaves).test
    assert [" ".join(to_symbols(tree, leaves)) for tree in trees] == text.targets
    assert len(trees) == (1 if leaves == "words" else 2)


def test_gold_trees_are_those_of_the_prefixes():
    settings = {"name": "treebank", "data_dir": str(TREEBANK)}
    settings["prefixes"] = ["test", "train", "valid"]
    treebank.treebanks_of(settings)
    assert treebank.gold_trees(settings, "train") == Treebank(data_dir=str(TREEBANK)).trees("test")
    # An empty name does not mean a split without trees.
    settings["prefixes"] = ["train", "valid", ""]
    with pytest.raises(ValueError, match=r"`prefixes` must name three splits"):
        treebank.gold_trees(settings, "test")


def test_members_that_are_no_plain_treebanks_are_refused(mixed):
    """tests/tasks/test_parsing.py has one corpus that is no treebank."""
    for wrong in ({"tag": "<silver>"}, {"corpus": "text_files"}):
        message = r"mixture\.json, member 2: a parser learns from treeb"
        with pytest.raises(ValueError, match=message):
            treebank.treebanks_of(mixed(**wrong))


def test_a_split_without_gold_trees_is_refused(tmp_path):
    (tmp_path / "test.trees").write_text("(())\nfoo\n", encoding="utf-8")
    settings = {"name": "treebank", "data_dir": str(tmp_path), "prefixes": [None, None, "test"]}
    with pytest.raises(ValueError, match=r"^the test split .* words: dropped: 1 empty bracket .*f"):
        treebank.gold_trees(settings, "test", Dropped())
    with pytest.raises(ValueError, match=r"^the valid split .* words: no file is named\. Check it"):
        treebank.gold_trees(settings, "valid", Dropped())


def test_a_treebank_may_have_a_test_split_alone(mixed):
    settings = mixed(prefixes=[None, None, "silver"])
    assert load_mixture(settings).train == corpora.load("treebank", data_dir=TREEBANK).train
    assert len(treebank.gold_trees(settings, "test")) == 8 + len(SILVER)
