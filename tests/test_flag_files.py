"""What each flag file says, typed here by hand: the paper's numbers, and those that the figures of
README.md were measured with.
"""

import pytest

from keras_transformer.flagfiles import FLAGFILES, expand_flagfiles

# Vaswani et al. 2017: table 3, first row; sections 5.1 to 5.4 and 6.1.
BASE = {
    "corpus": "tfds",
    "dataset": "wmt14_translate/de-en",
    "source_language": "en",
    "target_language": "de",
    "vocabulary_size": "37000",
    "num_layers": "6",
    "d_model": "512",
    "d_ff": "2048",
    "num_heads": "8",
    "dropout": "0.1",
    "label_smoothing": "0.1",
    "batch_tokens": "25000",
    "warmup_steps": "4000",
    "learning_rate_scale": "1.0",
    "max_steps": "100000",
    "checkpoint_minutes": "10",
    "average_checkpoints": "5",
    "beam_size": "4",
    "length_penalty": "0.6",
}
SAID = {
    "base": BASE,
    # Section 5.1: English-French with 32,000 pieces.
    "base_en_fr": BASE
    | {"dataset": "wmt14_translate/fr-en", "target_language": "fr", "vocabulary_size": "32000"},
    # Table 3, last row; sections 5.2 and 6.1.
    "big": BASE
    | {
        "d_model": "1024",
        "d_ff": "4096",
        "num_heads": "16",
        "dropout": "0.3",
        "max_steps": "300000",
        "keep_checkpoints": "20",
        "average_checkpoints": "20",
    },
    "tiny": {
        "vocabulary_size": "8000",
        "num_layers": "3",
        "d_model": "256",
        "d_ff": "1024",
        "num_heads": "4",
        "dropout": "0.2",
        "max_train_length": "100",
        "batch_tokens": "1280",
        "warmup_steps": "400",
        "learning_rate_scale": "0.6",
        "max_minutes": "15",
        "checkpoint_minutes": "1",
        "keep_checkpoints": "8",
        "average_checkpoints": "5",
        "validation_sentences": "200",
    },
    "toy": {
        "corpus": "reverse",
        "source_language": "words",
        "target_language": "reversed",
        "vocabulary_size": "300",
        "num_layers": "1",
        "d_model": "64",
        "d_ff": "128",
        "num_heads": "4",
        "dropout": "0",
        "label_smoothing": "0",
        "max_train_length": "32",
        "batch_tokens": "512",
        "warmup_steps": "200",
        "learning_rate_scale": "0.5",
        "max_epochs": "20",
        "keep_checkpoints": "3",
        "average_checkpoints": "3",
        "validation_sentences": "50",
        "mixed_precision": "float32",
    },
}


def test_each_flag_file_is_typed_here():
    assert {path.stem for path in FLAGFILES.glob("*.flags")} == SAID.keys()


@pytest.mark.parametrize("name", SAID)
def test_a_flag_file_says_what_was_typed_and_no_more(name):
    arguments = expand_flagfiles([f"--flagfile={name}.flags"])
    said = dict(argument.removeprefix("--").split("=", 1) for argument in arguments)
    assert said == SAID[name]
