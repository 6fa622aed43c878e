"""Write a trained model of any task as a SavedModel for TF Serving."""

import gc
import pathlib
from collections.abc import Mapping, Sequence

import tensorflow as tf

from keras_transformer.saved_models import assets, card, self_check
from keras_transformer.saved_models.served_module import ServedModule
from keras_transformer.saved_models.versions import numbered_paths
from pipelines.whole_files import whole_folder

# Strings have no gradients, and tracing gradients takes a fifth of the time of saving a graph.
NO_GRADIENTS = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
REMARK = (
    "Signatures: {}. `assets.extra/golden.jsonl` has examples and the outputs for them\n"
    "when this was exported; `assets.extra/batching_parameters.txt` is for TF Serving's "
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
    <version>/README.md, model.json                   its card
    <version>/assets.extra/golden.jsonl               examples and the outputs for them
    <version>/assets.extra/tf_serving_warmup_requests, batching_parameters.txt
    <version>/assets.extra/...                        the module's own files, such as a vocabulary

    `folder` is `saved_models/<name>`, where TF Serving looks for numbered versions; `description`
    the run's `model.json`, with `scores`; `examples` those of the test set, for golden examples;
    `version` by default the next free number. Return the path of the new version.
    """
    final = new_version(folder, version)
    with whole_folder(final) as temporary:
        _write(module, temporary, final.parent.name, description, examples)
        self_check.check(temporary)
    return final


def new_version(folder: pathlib.Path, version: int | None = None) -> pathlib.Path:
    """Return the path of a version that does not exist; the arguments and errors of `export`."""
    folder = pathlib.Path(folder).resolve()
    existing = numbered_paths(folder)
    number = 1 + max(existing, default=0) if version is None else version
    if number in existing:
        raise FileExistsError(
            f"{existing[number]} exists: a served version is never changed. Leave --version out "
            "for the next free one."
        )
    return folder / str(number)


def _write(module, path, name, description, examples):
    functions = module.functions()
    tf.saved_model.save(module, str(path), signatures=functions, options=NO_GRADIENTS)
    # Free copies of graphs that refer to each other: 0.2 GB for a deep model.
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
