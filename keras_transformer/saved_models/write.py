"""From a trained model to a SavedModel that TF Serving takes, whatever its task is."""

import gc
import pathlib
from collections.abc import Mapping, Sequence

import tensorflow as tf

from keras_transformer.saved_models import assets, card, self_check
from keras_transformer.saved_models.served_module import ServedModule
from keras_transformer.saved_models.versions import taken_numbers
from pipelines.whole_files import whole_folder

# Strings have no gradients; to trace those of their graph takes a fifth of the time of saving it.
NO_GRADIENTS = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
REMARK = (
    "Signatures: {}. `assets.extra/golden.jsonl` has examples and what came out for\n"
    "them when this was exported; `assets.extra/batching_parameters.txt` is for TF Serving's "
    "`--batching_parameters_file`.\n"
)


def export(
    module: ServedModule,
    folder: pathlib.Path,
    description: Mapping,
    examples: Sequence = (),
    version: int | None = None,
) -> pathlib.Path:
    """Write a version of a model, whole or not at all, and not if it differs from the live model.

    <version>/saved_model.pb, variables/              the graph with its signatures
    <version>/README.md, model.json                   what it is
    <version>/assets.extra/golden.jsonl               examples and what comes out for them
    <version>/assets.extra/tf_serving_warmup_requests, batching_parameters.txt
    <version>/assets.extra/...                        what the module adds: a vocabulary, say

    The folder is `saved_models/<name>`, where TF Serving looks for numbered versions, and the
    version by default the next free one; the description is the run's `model.json`, with `scores`;
    golden examples are taken from those of the test set. Gives the path of the new version.
    """
    final = new_version(folder, version)
    with whole_folder(final) as temporary:
        _write(module, temporary, final.parent.name, description, examples)
        self_check.check(temporary)
    return final


def new_version(folder: pathlib.Path, version: int | None = None) -> pathlib.Path:
    """The path of a version that is not there yet, with the arguments and errors of `export`."""
    folder = pathlib.Path(folder).resolve()
    taken = taken_numbers(folder)
    number = 1 + max(taken, default=0) if version is None else version
    if number in taken:
        raise FileExistsError(
            f"{taken[number]} exists: a served version is never changed. Leave --version out "
            "for the next free one."
        )
    return folder / str(number)


def _write(module, path, name, description, examples):
    functions = module.functions()
    tf.saved_model.save(module, str(path), signatures=functions, options=NO_GRADIENTS)
    # Copies of graphs that refer to each other: 0.2 GB of a deep model.
    gc.collect()
    signatures = sorted(functions)
    remark = REMARK.format(", ".join(signatures))
    card.write(path, module, description, {"signatures": signatures}, remark)
    extra = path / "assets.extra"
    extra.mkdir()
    module.write_files(extra)
    golden = assets.golden_examples(functions, module.golden_inputs(examples))
    assets.write_golden(extra / "golden.jsonl", golden)
    assets.write_warmup_requests(extra / "tf_serving_warmup_requests", functions, golden, name)
    assets.write_batching_parameters(extra / "batching_parameters.txt")
