"""Text that two models translate, written as a mixture; the models are pretended."""

import pytest

from pipelines import corpora

PAIRS = [("a b", "b a"), ("c d", "d c"), ("e", "e")]
CORPUS = {
    "name": "text_files",
    "source_language": "en",
    "target_language": "de",
    "prefixes": ["train", "valid", "test"],
}
ANSWERS = {"b a": ["a b"], "d c": ["c c"], "e": ["f"], "a b": ["b b"], "c d": ["d c"]}


@pytest.fixture
def diversified(benchmark_of, tmp_path, monkeypatch):
    """The benchmark, for a corpus of three pairs; what it asked of which model is in `asked`."""
    for prefix in CORPUS["prefixes"]:
        for place, language in enumerate(("en", "de")):
            lines = "".join(f"{pair[place]}\n" for pair in PAIRS)
            (tmp_path / f"{prefix}.{language}").write_text(lines)
    run = tmp_path / "run"
    run.mkdir()
    module = benchmark_of(
        "diversified_text",
        f"--forward={run}",
        "--backward=back",
        f"--output_dir={tmp_path / 'out'}",
    )
    module.asked = []

    def pretend(model, lines, **options):
        module.asked.append((model, options))
        drawn = [["x y", "x y"]] * len(lines)
        return drawn if "samples" in options else [ANSWERS.get(line, ["g"]) for line in lines]

    monkeypatch.setattr(module, "hypotheses", pretend)
    monkeypatch.setattr(
        "keras_transformer.runs.folder.RunFolder.read_description",
        lambda self: {"corpus": {**CORPUS, "data_dir": str(tmp_path)}},
    )
    return module


def test_new_pairs_join_those_of_the_corpus(diversified, tmp_path, capsys):
    diversified.main(None)
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


def test_the_backward_model_searches_and_draws(diversified, tmp_path):
    diversified.main(None)
    drawing = {"samples": 2, "num_hypotheses": 2, "temperature": 0.7, "seed": 1}
    assert diversified.asked == [("back", {}), ("back", drawing), (str(tmp_path / "run"), {})]


def test_a_run_of_another_corpus_is_refused(diversified, monkeypatch):
    monkeypatch.setattr(
        "keras_transformer.runs.folder.RunFolder.read_description",
        lambda self: {"corpus": {"name": "home_assistant"}},
    )
    with pytest.raises(SystemExit, match=r"must be a run of text_files\. Received: home_assistant"):
        diversified.main(None)


def test_what_the_corpus_has_already_is_left_out(benchmark_of):
    new_pairs = benchmark_of(
        "diversified_text", "--forward=a", "--backward=b", "--output_dir=c"
    ).new_pairs
    assert new_pairs(["a"], ["b"], [["a", "c", "c", " "]], True) == [("c", "b")]
    assert new_pairs(["a"], ["b"], [["b", "c"]], False) == [("a", "c")]
