"""Text that two models translate, written as a mixture; the models are pretended."""

import pytest
from command_flags import flags_of

from keras_transformer import diversify
from pipelines import corpora
from pipelines.prepare import diversification

PAIRS = [("a b", "b a"), ("c d", "d c"), ("e", "e")]
CORPUS = {
    "name": "text_files",
    "source_language": "en",
    "target_language": "de",
    "prefixes": ["train", "valid", "test"],
}
ANSWERS = {"b a": ["a b"], "d c": ["c c"], "e": ["f"], "a b": ["b b"], "c d": ["d c"]}


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """What the command asked of which model, for a corpus of three pairs."""
    for prefix in CORPUS["prefixes"]:
        for place, language in enumerate(("en", "de")):
            lines = "".join(f"{pair[place]}\n" for pair in PAIRS)
            (tmp_path / f"{prefix}.{language}").write_text(lines)
    (tmp_path / "run").mkdir()
    asked = []

    def pretend(model, lines, decode_tokens, **options):
        asked.append((model, options))
        drawn = [["x y", "x y"]] * len(lines)
        return drawn if "samples" in options else [ANSWERS.get(line, ["g"]) for line in lines]

    monkeypatch.setattr(diversify, "hypotheses", pretend)
    describe(monkeypatch, {**CORPUS, "data_dir": str(tmp_path)})
    return asked


def describe(monkeypatch, corpus):
    monkeypatch.setattr(
        "keras_transformer.runs.folder.RunFolder.read_description", lambda self: {"corpus": corpus}
    )


def run(tmp_path):
    folders = [f"--forward={tmp_path / 'run'}", "--backward=back", f"--output_dir={tmp_path}/out"]
    diversify.main(flags_of("diversify", *folders))


def test_new_pairs_join_those_of_the_corpus(asked, tmp_path, capsys):
    run(tmp_path)
    out = tmp_path / "out"
    languages = {"source_language": None, "target_language": None}
    text = corpora.load("mixture", mixture=out / "mixture.json", **languages)
    pairs = list(zip(text.train.sources, text.train.targets, strict=True))
    back = [("x y", "b a"), ("c c", "d c"), ("x y", "d c"), ("f", "e"), ("x y", "e")]
    forth = [("a b", "b b"), ("e", "f")]
    assert pairs == [*PAIRS, *back, *forth]
    assert text.weights.tolist() == [1] * 3 + [0.6] * 5 + [0.5] * 2
    assert len(text.valid) == len(text.test) == len(PAIRS)
    assert "5 pairs of backward translation, 2 of forward translation" in capsys.readouterr().out


def test_the_backward_model_searches_and_draws(asked, tmp_path):
    run(tmp_path)
    drawing = {"samples": 2, "num_hypotheses": 2, "temperature": 0.7, "seed": 1}
    assert asked == [("back", {}), ("back", drawing), (str(tmp_path / "run"), {})]


def test_a_run_of_another_corpus_is_refused(monkeypatch, tmp_path):
    describe(monkeypatch, {"name": "home_assistant"})
    with pytest.raises(ValueError, match=r"must be a run of text_files\. Received: home_assistant"):
        run(tmp_path)


def test_a_folder_that_is_missing_is_named():
    with pytest.raises(ValueError, match=r"^--backward is missing"):
        diversify.main(flags_of("diversify", "--forward=a", "--output_dir=b"))


def test_what_the_corpus_has_already_is_left_out():
    new_pairs = diversification.new_pairs
    assert new_pairs(["a"], ["b"], [["a", "c", "c", " "]], True) == [("c", "b")]
    assert new_pairs(["a"], ["b"], [["b", "c"]], False) == [("a", "c")]
