"""The toy is trained with every variant that a flag names, each once; nothing is trained here."""

import json

import pytest
from absl import flags
from command_flags import EVERY_FLAG

from keras_transformer.models.variants import ATTENTIONS

OF_NAMES = (
    *("positions", "tie_embeddings", "norm", "activation", "optimizer"),
    "residual_initialization",
)
STEP = {"step": 7, "val_accuracy": 0.5, "val_bleu": 12.3}
CHOSEN = "--variants=paper,attention=local:3,r_drop=5"


def definition_of(name):
    return EVERY_FLAG[name]


def test_every_value_of_a_flag_is_the_default_or_a_variant(benchmark_of):
    values = benchmark_of("toy_variants").VALUES
    for name in OF_NAMES:
        flag = definition_of(name)
        assert sorted([*values[name], flag.default]) == sorted(flag.parser.enum_values)
    attentions = [value.partition(":")[0] for value in values["attention"]]
    assert {*attentions, definition_of("attention").default} == ATTENTIONS.keys()
    for name in values.keys() - OF_NAMES:
        assert definition_of(name).default not in values[name]


@pytest.fixture
def toy_variants(benchmark_of, tmp_path, monkeypatch):
    """The benchmark of three variants; each training is told in `trained`, and leaves a history."""
    module = benchmark_of("toy_variants", f"--run_dir={tmp_path / 'runs'}", "--updates=7", CHOSEN)
    module.trained = []

    def pretend(folder, arguments, core):
        module.trained.append(arguments)
        folder.mkdir(parents=True)
        (folder / "history.jsonl").write_text(json.dumps(STEP) + "\n", encoding="utf-8")
        (folder / "averaged.npz").touch()

    monkeypatch.setattr(module, "train_alone", pretend)
    return module


def test_each_is_trained_once_and_told(toy_variants, capsys):
    toy_variants.main(None)
    toy_variants.main(None)
    same = [
        *("--flagfile=toy.flags", "--mixed_precision=float32", "--max_steps=7"),
        *("--max_epochs=1000000", "--seed=1", "--norelease"),
    ]
    assert sorted(toy_variants.trained) == [
        same,
        [*same, "--attention=local:3"],
        [*same, "--r_drop=5", "--dropout=0.1"],
    ]
    printed = capsys.readouterr().out
    assert "| the paper's | 7 | 50.0 | 12.3 |" in printed
    assert "| --r_drop=5 --dropout=0.1 | 7 | 50.0 | 12.3 |" in printed


def test_what_was_kept_of_other_flags_is_refused(toy_variants):
    toy_variants.main(None)
    flags.FLAGS.updates = 8
    with pytest.raises(SystemExit, match=r"was made with max_steps='7', not '8'\. Delete it"):
        toy_variants.main(None)


def test_an_unknown_variant_is_refused(benchmark_of):
    module = benchmark_of("toy_variants", "--variants=paper,norm=middle")
    with pytest.raises(Exception, match=r"Received: norm=middle\.$"):
        module.main(None)
