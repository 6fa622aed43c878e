"""A mixture: its members one after another, each pair with its member's tag and weight; errors
name file, member and key.
"""

import itertools
import json

import numpy as np
import pytest
import token_lists
from hypothesis import given, settings
from hypothesis import strategies as st
from token_lists import pairs_of

from pipelines import corpora
from pipelines.corpora import CORPORA, Mixture
from pipelines.corpora.options import Target
from pipelines.corpora.parallel_text import Corpus, ParallelText
from pipelines.options import option

PAIRS = st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), min_size=1, max_size=4)
TAGS = st.one_of(st.none(), st.from_regex(r"<[A-Za-z0-9_-]+>", fullmatch=True))
LANGUAGES = st.sampled_from(["en", "de", "fr"])
MEMBER = st.fixed_dictionaries(
    {
        "splits": st.tuples(PAIRS, PAIRS, PAIRS),
        "languages": st.tuples(LANGUAGES, LANGUAGES),
        "tag": TAGS,
    },
    optional={"weight": st.one_of(st.integers(1, 5), st.floats(0.01, 100))},
)
REVERSE = {"corpus": "reverse", "source_language": "en", "target_language": "de"}


def write(folder, content):
    path = folder / "mixture.json"
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


def load(folder, *members, **options):
    return corpora.load("mixture", mixture=write(folder, {"corpora": list(members)}), **options)


def complaint(folder, content, error_type=ValueError):
    path = write(folder, content)
    message = token_lists.complaint(error_type, corpora.load, "mixture", mixture=path)
    assert str(path) in message
    return message


def text_files(folder, name, languages=("en", "de"), lines=2):
    (folder / name).mkdir()
    for prefix, language in itertools.product(("train", "valid", "test"), languages):
        text = "".join(f"{name} {prefix} {language} {n}\n" for n in range(lines))
        (folder / name / f"{prefix}.{language}").write_text(text)
    sides = zip(("source_language", "target_language"), languages, strict=True)
    return {"corpus": "text_files", "data_dir": name, **dict(sides)}


class InMemory(Target):
    """A corpus with the pairs of `SPLITS`."""

    name = "in_memory"
    seed: int = option(0, "Number of its splits among `SPLITS`.")

    def load(self):
        texts = map(ParallelText.from_pairs, SPLITS[self.seed])
        languages = (self.source_language, self.target_language)
        dropped = {"empty": 1, str(self.seed): 2}
        return Corpus("in_memory", *languages, *texts, dropped=dropped)


SPLITS = []


@settings(max_examples=30)
@given(st.lists(MEMBER, min_size=1, max_size=4))
def test_members_follow_each_other_with_their_tags_and_weights(tmp_path_factory, members):
    SPLITS[:] = [member["splits"] for member in members]
    definitions = []
    for number, member in enumerate(members):
        languages = zip(("source_language", "target_language"), member["languages"], strict=True)
        own = {key: member[key] for key in ("tag", "weight") if member.get(key)}
        definitions.append({"corpus": "in_memory", "seed": number, **dict(languages), **own})
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(CORPORA, "in_memory", InMemory)
        mixed = load(tmp_path_factory.mktemp("mixture"), *definitions)

    for number, text in enumerate((mixed.train, mixed.valid, mixed.test)):
        expected = [
            (f"{member['tag']} {source}" if member["tag"] else source, target)
            for member in members
            for source, target in member["splits"][number]
        ]
        assert pairs_of(text) == expected
    weights = [member.get("weight", 1) for member in members for _ in member["splits"][0]]
    if set(weights) == {1}:
        assert mixed.weights is None
    else:
        assert mixed.weights.dtype == np.float64
        np.testing.assert_array_equal(mixed.weights, weights)
    assert set(mixed.tags) == {member["tag"] for member in members} - {None}
    assert len(set(mixed.tags)) == len(mixed.tags)
    each = {str(number): 2 for number in range(len(members))}
    assert mixed.dropped == {"empty": len(members), **each}
    assert mixed.name == "mixture"
    for side, joined in enumerate((mixed.source_language, mixed.target_language)):
        languages = [member["languages"][side] for member in members]
        assert joined.split("+") == [*dict.fromkeys(languages)]


def test_relative_paths_start_at_the_folder_of_the_mixture(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    text = {**REVERSE, "corpus": "text_files"}
    members = [
        {**text, "data_dir": "a/b"},
        {**REVERSE, "corpus": "home_assistant", "cache_dir": "d"},
        {**text, "data_dir": "~/e"},
        {**text, "data_dir": "gs://bucket/f"},
        {**text, "data_dir": "/c"},
        {**text, "data_dir": "~nobody_here/i"},
        {**REVERSE, "corpus": "tsv", "data_file": "g/h.tsv"},
        {**REVERSE, "corpus": "home_assistant"},
    ]
    path = write(tmp_path, {"corpora": members})
    loaded = Mixture(mixture=str(path), cache_dir="given").members()
    names = ("data_dir", "data_file", "cache_dir")
    options = [[getattr(member.corpus, name, None) for name in names] for member in loaded]
    expected = [str(tmp_path / "a/b"), str(tmp_path / "d"), "/home/someone/e", "gs://bucket/f"]
    expected += ["/c", str(tmp_path / "~nobody_here/i"), str(tmp_path / "g/h.tsv"), "given"]
    assert [next(filter(None, paths)) for paths in options] == expected


def test_tree_leaves_reach_treebanks_alone(tmp_path):
    path = str(write(tmp_path, {"corpora": [REVERSE, {**REVERSE, "corpus": "treebank"}]}))
    of_reverse, of_trees = Mixture(mixture=path, tree_leaves="words", strict=True).members()
    assert (of_trees.corpus.tree_leaves, of_trees.corpus.strict) == ("words", True)
    assert not hasattr(of_reverse.corpus, "tree_leaves")
    assert Mixture(mixture=path).members()[1].corpus.tree_leaves == "xx"


NO_WEIGHTS = (-1.5, 1e-300, "2", True, float("nan"), float("inf"), 10**400, [1])
NO_TAGS = ("2de", "<2 de>", "<2de>\n", "<>", "<größe>", 2)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        *(("weight", value, "0 or a number of at least 1e-6") for value in NO_WEIGHTS),
        *(("tag", value, "a string such as <2de>") for value in NO_TAGS),
        *(("seed", value, "an integer") for value in (1.5, False)),
        ("seed", -1, "an integer, at least 0"),
        ("data_dir", "", "set"),
        ("data_dir", ["a"], "a string"),
        ("dataset", 1, "a string"),
        ("source_language", None, "set"),
        ("source_language", 3, "a string"),
    ],
)
def test_a_wrong_value_names_file_member_and_key(tmp_path, key, value, expected):
    corpus = {"data_dir": "text_files", "dataset": "tfds"}.get(key, "reverse")
    message = complaint(tmp_path, {"corpora": [REVERSE, {**REVERSE, "corpus": corpus, key: value}]})
    assert f"mixture.json, member 2: `{key}` must be {expected}" in message
    assert f"{value!r}." in message


# A wrong member, and what the message says.
MEMBERS = [
    ({**REVERSE, "corpus": "text_files", "prefixes": 3}, "`prefixes` must name three splits: "),
    ({**REVERSE, "corpus": "tfds", "splits": ["a", "b", 1]}, "`splits` must name three splits: "),
    ({**REVERSE, "corpus": "treebank", "prefixes": ["a", None, 1]}, "`test_prefix` must be a s"),
    ({**REVERSE, "corpus": "treebank", "prefixes": None}, "`prefixes` must be set"),
    ({**REVERSE, "corpus": "lines", "splits": []}, "only corpus tfds reads `splits`. Receiv"),
    (
        {**REVERSE, "corpus": "tfds", "prefixes": ["a", "b", "c"]},
        "only corpus treebank or text_files or lines or spans reads `prefixes`. Receiv",
    ),
    *(
        ({**REVERSE, key: 1}, f"`{key}` is no key of a member. Known: cache_dir, corpus, ")
        for key in ("weigth", "mixture", "name", "")
    ),
    *(
        ({name: REVERSE[name] for name in REVERSE if name != key}, f"`{key}` is missing.")
        for key in REVERSE
    ),
    *((member, "must be {") for member in ("reverse", 1, None, [])),
    *(
        ({**REVERSE, "corpus": name}, f": text, and no mixture. Received: {name!r}.")
        for name in ("mixture", "records", "wmt", ["reverse"])
    ),
]


@pytest.mark.parametrize(("member", "expected"), MEMBERS)
def test_a_wrong_member_is_refused_with_its_number(tmp_path, member, expected):
    message = complaint(tmp_path, {"corpora": [REVERSE, member]})
    assert "mixture.json, member 2: " in message
    assert expected in message
    assert ("`corpus` must be one of " in message) == ("no mixture" in expected)


OTHER_OBJECTS = ({}, {"corpora": []}, {"corpora": {}}, {"corpora": [REVERSE], "weight": 2})
ONE_OR_MORE = ' must be {"corpora": [...]}, with one member or more. Received: '
NO_OBJECT = " is damaged: it must hold a JSON object. Received: "
NO_JSON = ("", "{", '{"corpora": [,]}', "{'corpora': []}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((root, f"{ONE_OR_MORE}{str(root)[:200]}. List the members.") for root in OTHER_OBJECTS),
        *((root, NO_OBJECT) for root in ([], "3", '"corpora"')),
        *((text, " is damaged: it is not JSON (") for text in NO_JSON),
        ('{"corpora": "\udcff"}', " is damaged: it must be UTF-8. Received: byte 13 is not."),
    ],
)
def test_a_file_that_is_no_mixture_is_refused(tmp_path, content, message):
    assert f"mixture.json{message}" in complaint(tmp_path, content)


def test_an_error_in_the_files_of_a_member_has_its_number(tmp_path):
    good, bad = text_files(tmp_path, "good"), text_files(tmp_path, "bad")
    path = tmp_path / "bad" / "train.de"
    path.write_bytes(b"\xff\n")
    both = {"corpora": [good, bad]}
    assert f"member 2: {path}, line 1: must be UTF-8." in complaint(tmp_path, both)
    path.unlink()
    assert "member 2: Neither " in complaint(tmp_path, both, OSError)
    # A control: without the damaged member.
    assert load(tmp_path, good, good).train.sources == ["good train en 0", "good train en 1"] * 2


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: .*nowhere\.json"):
        corpora.load("mixture", mixture=tmp_path / "nowhere.json")


def test_a_mixture_with_weights_is_not_read_in_parts(tmp_path):
    member = text_files(tmp_path, "news")
    options = {"source_language": "en", "target_language": "de"}
    options["mixture"] = write(tmp_path, {"corpora": [{**member, "tag": "<2de>"}]})
    [pair] = corpora.stream("mixture", part=1, parts=2, **options)
    assert pair == ("<2de> news train en 1", "news train de 1")
    write(tmp_path, {"corpora": [{**member, "tag": "<2de>", "weight": 0.5}]})
    with pytest.raises(ValueError, match="has weights other than 1"):
        corpora.stream("mixture", **options)
    held_out = corpora.held_out("mixture", **options)
    assert (held_out.tags, held_out.weights) == (("<2de>",), None)
    assert (len(held_out.train), len(held_out.valid)) == (0, 2)


def test_a_corpus_takes_one_weight_per_pair():
    text = ParallelText(["a", "b"], ["A", "B"])
    corpus = Corpus("name", "en", "de", text, text, text, {})
    assert (corpus.tags, corpus.weights) == ((), None)
    assert corpus == Corpus("name", "en", "de", text, text, text, {}, weights=np.ones(2))
    expected = (
        r"`weights` must have one weight for each of the 2 training pairs\. Received: shape \("
    )
    for weights in (np.ones(3), np.ones((2, 1)), np.ones(())):
        with pytest.raises(ValueError, match=expected):
            Corpus("name", "en", "de", text, text, text, {}, weights=weights)


def test_a_split_that_no_member_has_is_refused(tmp_path):
    names = ("a", "b", "c")
    for name in names:
        (tmp_path / f"{name}.trees").write_text("(S (XX a))\n" * 3)
    languages = {"source_language": "en", "target_language": "trees"}
    member = {"corpus": "treebank", "data_dir": str(tmp_path), **languages}
    load(tmp_path, {**member, "prefixes": names})
    for number, split in enumerate(("train", "valid", "test")):
        prefixes = [None if number == place else names[place] for place in range(3)]
        assert split in complaint(tmp_path, {"corpora": [{**member, "prefixes": prefixes}]})
