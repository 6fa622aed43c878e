"""Does each variant learn the toy? `python -m benchmarks.toy_variants` trains toy.flags with the
flag of one variant after the other, by the command `train`, for the same number of updates.

Printed are accuracy a piece, and BLEU of the sentences that toy.flags validates on, of the last
weights. Each run has a core of its own. One that is done is not trained again, one that was
interrupted goes on; what was kept with other flags is refused. `--variants=positions=shaw,norm=pre`
trains some of them.
"""

import json
import pathlib

from absl import app, flags

from benchmarks.kept import keep_settings
from benchmarks.side_by_side import side_by_side, train_alone
from benchmarks.tables import print_table
from keras_transformer.flagfiles import expand_flagfiles

# By flag, the values of which each makes a variant.
VALUES = {
    "attention": ("dot_product", "additive", "local:3", "sparse:3", "low_rank:16", "linear"),
    "positions": ("learned", "relative", "shaw", "rotary", "none"),
    "tie_embeddings": ("decoder", "none"),
    "norm": ("pre", "pre_rms"),
    "activation": ("gelu", "gelu_tanh", "swish", "swiglu"),
    "residual_initialization": ("glorot",),
    "optimizer": ("adamw", "muon", "adafactor"),
    "attention_dropout": (0.1,),
    "activation_dropout": (0.1,),
    "token_dropout": (0.05,),
    "scheduled_sampling": (0.25,),
    "r_drop": (5,),
    "bpe_dropout": (0.1,),
    "subword_regularization": (0.2,),
}
# What a variant does nothing without.
BESIDE = {
    "optimizer=adamw": ("--weight_decay=0.01",),
    "r_drop=5": ("--dropout=0.1",),
    "subword_regularization=0.2": ("--vocabulary_model=unigram", "--vocabulary_size=285"),
}
PAPER = "paper"
VARIANTS = {PAPER: ()} | {
    f"{flag}={value}": (f"--{flag}={value}", *BESIDE.get(f"{flag}={value}", ()))
    for flag, values in VALUES.items()
    for value in values
}

RUN_DIR = flags.DEFINE_string("run_dir", "runs/toy_variants", "Folder of the runs.")
UPDATES = flags.DEFINE_integer("updates", 1500, "Updates of a run.", lower_bound=1)
CHOSEN = flags.DEFINE_list("variants", list(VARIANTS), "Which to train.")
SEED = flags.DEFINE_integer("seed", 1, "Of weights, dropout, order and text.", lower_bound=0)


def arguments_of(variant: str) -> list[str]:
    """What comes after `train` for a variant; `--max_steps` alone ends it."""
    limits = (f"--max_steps={UPDATES.value}", "--max_epochs=1000000", f"--seed={SEED.value}")
    alike = ("--flagfile=toy.flags", "--mixed_precision=float32", *limits, "--norelease")
    return [*alike, *VARIANTS[variant]]


def settings_of(variant: str) -> dict[str, str]:
    """All flags that a run depends on, by name."""
    given = (one.removeprefix("--") for one in expand_flagfiles(arguments_of(variant)))
    return {name: value for name, _, value in (one.partition("=") for one in given)}


def train(core: int, variant: str) -> dict:
    """Train a variant on a core, if that is not done yet.

    Returns:
        What it measured last, as it stands in its history.
    """
    folder = pathlib.Path(RUN_DIR.value) / variant.replace(":", "_")
    keep_settings(folder, settings_of(variant))
    if not (folder / "averaged.npz").is_file():
        train_alone(folder, arguments_of(variant), core)
    last = (folder / "history.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    found = json.loads(last)
    print(variant, found, flush=True)
    return found


def main(_):
    if unknown := sorted(set(CHOSEN.value) - VARIANTS.keys()):
        raise app.UsageError(
            f"--variants must be among {', '.join(VARIANTS)}. Received: {', '.join(unknown)}."
        )
    found = side_by_side(train, [(variant,) for variant in CHOSEN.value])
    rows = [
        (
            " ".join(VARIANTS[variant]) or "the paper's",
            f"{last['step']:,}",
            f"{100 * last['val_accuracy']:.1f}",
            f"{last['val_bleu']:.1f}",
        )
        for variant, last in zip(CHOSEN.value, found, strict=True)
    ]
    print_table(("toy.flags with", "updates", "accuracy", "BLEU"), rows)


if __name__ == "__main__":
    app.run(main)
