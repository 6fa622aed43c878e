"""What becomes of the flags of training when a run is resumed with others: they are refused, told
or free.
"""

from collections.abc import Callable, Mapping
from typing import Any

from keras_transformer.runs.folder import RunFolder

# Parts of the description of the run or of its task hold these; `Task.fixed` says which may change.
DESCRIBED = (
    *("architecture", "num_layers", "d_model", "d_ff", "num_heads", "kernel_size", "d_k", "d_v"),
    *("norm", "activation", "positions", "max_positions", "attention", "tie_embeddings"),
    *("residual_initialization", "attention_bias", "norm_epsilon", "scaled_embeddings", "dropout"),
    *("attention_dropout", "activation_dropout", "token_dropout", "label_smoothing"),
    *("corpus", "data_dir", "dataset", "splits", "mixture", "tree_leaves"),
    *("train_prefix", "valid_prefix", "test_prefix", "source_language", "target_language"),
    *("seed", "batch_tokens", "max_train_length", "mask_share", "labelled_examples", "pooling"),
    *("pictures", "pictures_dir", "patch_size", "shift", "task", "vocabulary_size"),
)
# What was decided when the run began: another value would be passed over, or spoil the run.
FIXED = (
    *("vocabulary_model", "vocabularies", "vocabulary_from"),
    *("embedding_initialization", "optimizer", "ema", "static_shapes"),
)
# What the rest of the run does otherwise.
TOLD = (
    # It has had its effect.
    "init_from",
    *("schedule", "warmup_steps", "learning_rate", "learning_rate_scale", "weight_decay"),
    *("clip_norm", "r_drop", "bpe_dropout", "subword_regularization", "scheduled_sampling"),
    *("scheduled_sampling_steps", "accumulate", "distribution", "jit_compile", "mixed_precision"),
    *("checkpoint_minutes", "average_over", "average_share", "keep_checkpoints"),
    *("average_checkpoints", "strict"),
    *("keep_best", "validation_sentences", "tokenize", "beam_size", "length_penalty"),
    *("coverage_penalty", "max_length", "min_length", "no_repeat_ngram_size"),
    *("repetition_penalty", "constrained", "samples", "num_hypotheses", "temperature", "top_k"),
    "top_p",
)
# When the run ends, where it lies, and what is done at its end.
FREE = (
    *("max_steps", "max_epochs", "max_minutes", "patience", "release", "report"),
    *("model_dir", "export_dir", "cache_dir", "tpu"),
)


def describe(
    folder: RunFolder,
    description: Mapping[str, Any],
    values: Mapping[str, Any],
    fixed: Callable[[Mapping], Mapping],
) -> list[str]:
    """Write what a run is, and the flags that it is trained with; refuse to go on with another.

    Args:
        folder: of the run.
        description, fixed: as `RunFolder.describe` takes them.
        values: of the flags of training, by name.

    Returns:
        What of the flags is not as it was, in words.

    Raises:
        ValueError: as `RunFolder.describe`; if a flag of `FIXED` is not as it was.
    """
    told = [*TOLD, *(["max_steps"] if values["schedule"] == "cosine" else [])]
    asked = {name: values[name] for name in FIXED if values.get(name) is not None}
    settings = {name: values[name] for name in told if name in values}
    was = folder.read_description().get("settings", {}) if folder.is_started else {}

    def all_fixed(whole):
        before = whole.get("asked", {})
        parts = {name: part for name, part in fixed(whole).items() if name != "settings"}
        # What an earlier version did not write is as it is now.
        return {**parts, "asked": {name: before.get(name, asked[name]) for name in asked}}

    folder.describe({**description, "asked": asked, "settings": settings}, all_fixed)
    return [
        f"{name} was {_in_words(was[name])}, now {_in_words(value)}"
        for name, value in settings.items()
        if name in was and was[name] != value
    ]


def _in_words(value):
    return "not given" if value is None else value
