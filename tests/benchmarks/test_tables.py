"""Numbers of the tables, counted by hand or quoted from the paper; output of other benchmarks."""

import contextlib
import subprocess
import sys
import types

import keras
import pytest
from home_assistant_wheel import cached_wheel, languages_of
from oracles import paper

from benchmarks.paper import table1_layers
from benchmarks.paper.paper_table3 import (
    BASE,
    FITTING_VOCABULARY,
    PAPER,
    VOCABULARY,
    hyperparameters,
    more_than_base,
)
from keras_transformer.evaluation import metrics
from pipelines import vocabularies
from pipelines.corpora import load

# Table 1's layers: what the paper says of each, and how far a stack of them reaches.
WIDTH = 2
SIZES = {"width": WIDTH, "num_heads": 1, "radius": 4, "rank": 4, "kernel": 3}


def layers_to_reach(name, length):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float64")
    try:
        layer = table1_layers.make(name, length, **SIZES)
        return table1_layers.layers_to_reach(layer, length, WIDTH)
    finally:
        keras.config.set_dtype_policy(before)


# L dilated kernels of 3 reach 2 (1 + 3 + ... + 3^(L - 1)) = 3^L - 1 positions back, contiguous ones
# L to either side.
@pytest.mark.parametrize(
    ("name", "length", "layers"),
    [
        ("dilated convolution", 9, 2),
        ("dilated convolution", 10, 3),
        ("dilated convolution", 27, 3),
        ("dilated convolution", 28, 4),
        ("convolution", 14, 13),
        ("separable convolution", 14, 13),
        ("restricted", 14, 4),
        # Columns of every fourth position: the first and the last stand in different ones, or not.
        ("sparse", 16, 2),
        ("sparse", 17, 1),
        ("self-attention", 14, 1),
    ],
)
def test_layers_that_connect_both_ends_are_as_many_as_counted_by_hand(name, length, layers):
    assert layers_to_reach(name, length) == layers


def test_each_layer_has_a_row_of_the_paper():
    assert table1_layers.PAPER.keys() == table1_layers.LAYERS.keys()
    paths = {name: path for name, (_, _, path) in table1_layers.PAPER.items()}
    # Table 1 has this row's; n / k stands in section 4's text.
    assert paths["dilated convolution"] == "log_k n"
    assert paths["convolution"] == "n / k (contiguous)"


def test_timed_layers_compute_in_float32(benchmark_of):
    """Layers and depth are counted in float64, in the same process and before."""
    benchmark_of("paper.table1").counts("convolution")
    assert table1_layers.make("convolution", 16, **SIZES).compute_dtype == "float32"


# Table 3's column of parameters: each row differs from base as in the paper, within 1 million.
COUNTED = [row for row, quoted in PAPER.items() if quoted.millions is not None]


# With `VOCABULARY` pieces. test_paper.py compares the sum with a model.
COUNTS = {row: paper.millions(hyperparameters(row)) for row in PAPER}


def off_by(row, pieces):
    theirs = PAPER[row].millions - PAPER[BASE].millions
    return more_than_base(row, COUNTS, pieces) - theirs


@pytest.mark.parametrize("row", sorted(set(COUNTED) - {"big"}))
def test_a_row_differs_from_base_as_the_paper_s_with_41000_pieces(row):
    assert abs(off_by(row, FITTING_VOCABULARY)) < 1


def test_no_number_of_pieces_suits_both_rows_that_are_1024_wide():
    """They differ in d_ff alone: 12 networks, 2 * 1,024 + 1 weights for each inner unit."""
    wide = "table3/c_d_model_1024"
    assert COUNTS["big"] - COUNTS[wide] == pytest.approx(12 * 2048 * 2049 / 1e6)
    assert PAPER["big"].millions - PAPER[wide].millions == 45
    for pieces in (VOCABULARY, FITTING_VOCABULARY):
        assert off_by("big", pieces) - off_by(wide, pieces) == pytest.approx(5.36, abs=0.005)


def test_the_table_says_by_how_much_each_row_is_off(benchmark_of, monkeypatch, capsys):
    table3 = benchmark_of("paper.table3")
    monkeypatch.setattr(table3, "parameters", lambda: COUNTS)
    table3.print_parameters()
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split(" | ")[0]: line.strip("| ").split(" | ")[1:] for line in lines}
    expected = [*("163.82", "168", "+103"), *("+100.77", "-2.23", "+102.82", "-0.18")]
    assert rows["| table3/c_d_model_1024"] == expected
    assert rows["| table3/a_1_head"][1:3] == ["", ""]
    assert "50.4 million" in lines[-1]


# Every language of the default corpus has a vocabulary, and its references score 100.
@pytest.mark.slow
def test_every_language_holds_a_vocabulary_and_a_perfect_translation_scores_100():
    for language in languages_of(cached_wheel()):
        try:
            corpus = load("home_assistant", source_language="en", target_language=language)
        except ValueError as error:
            # The corpus has some codes with a handful of texts.
            if "has too little" not in str(error):
                raise
            continue
        vocabularies.learn(corpus.train.sources, corpus.train.targets, "joint", 4000)
        # Not the test side alone: of the smallest it has no four words in a row, and no BLEU.
        sides = (corpus.test, corpus.valid, corpus.train)
        texts = [text for side in sides for text in side.targets][:2000]
        scores = metrics.measure(metrics.choose(["bleu", "chrf"], None, language), texts, texts)
        assert min(score["score"] for score in scores.values()) > 99.99, language


# Languages with few pairs, with many characters, and without spaces.
@pytest.mark.slow
@pytest.mark.parametrize("language", ["ar", "es-419", "ja", "zh-Hans"])
def test_a_language_is_trained_by_the_command_that_users_type(tmp_path, language):
    cached_wheel()
    command = [sys.executable, "-m", "keras_transformer.train", "--flagfile=tiny.flags"]
    command += [f"--target_language={language}", f"--model_dir={tmp_path / 'run'}", "--norelease"]
    command += ["--num_layers=1", "--d_model=32", "--d_ff=64", "--num_heads=2", "--max_steps=20"]
    command += ["--batch_tokens=256", "--validation_sentences=0"]
    command += ["--embedding_initialization=drawn"]
    subprocess.run(command, check=True, capture_output=True)


# What benchmarks of decoding and serving print of their measurements; nothing is decoded.
LINES = ["one", "two", "three"]
SAVED_MODEL = "--model_base_path=saved_models/none"


@pytest.mark.parametrize("answer", [str.upper, str.title])
def test_served_translations_must_equal_direct_ones(benchmark_of, monkeypatch, capsys, answer):
    serving = benchmark_of("limits.serving", SAVED_MODEL, "--clients=1,3", "--alone=2")
    server = types.SimpleNamespace(seconds=1.0, ended=0, memory=lambda: 1e6)
    direct = {"loaded": 1.0, "first": 1.0, "seconds": 1.0, "translations": ["ONE", "TWO", "THREE"]}
    monkeypatch.setattr(serving, "sentences", lambda most: LINES)
    monkeypatch.setattr(serving, "running", lambda folder: contextlib.nullcontext(server))
    monkeypatch.setattr(serving, "call_directly", lambda lines: direct)

    def ask(server, lines, clients):
        return list(map(answer, lines)), [0.5] * len(lines), 0.5 * len(lines) / clients

    monkeypatch.setattr(serving, "ask", ask)
    if answer is str.upper:
        serving.main([])
    else:
        with pytest.raises(SystemExit, match="DIFFERENT: what 1 clients"):
            serving.main([])
    printed = capsys.readouterr().out
    assert "| served, 1 client | 2.0 | 500 | 500 |" in printed
    assert "| served, 3 clients | 6.0 | 500 | 500 |" in printed


def test_cores_are_chosen_before_a_corpus_is_loaded(benchmark_of, monkeypatch):
    pytest.importorskip("ctranslate2")
    agreement = benchmark_of("peers.agreement")
    called = []

    def load(**settings):
        called.append("load")
        raise InterruptedError

    run = types.SimpleNamespace(read_description=lambda: {"corpus": {}})
    monkeypatch.setattr(agreement, "RunFolder", lambda path: run)
    monkeypatch.setattr(agreement, "start_tensorflow", lambda: called.append("start"))
    monkeypatch.setattr(agreement, "spread_over_cores", lambda: called.append("spread"))
    monkeypatch.setattr(agreement.corpora, "load", load)
    with pytest.raises(InterruptedError):
        agreement.main([])
    assert called == ["start", "spread", "load"]
