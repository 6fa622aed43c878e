"""Export a run as a SavedModel: `python -m keras_transformer.export --model_dir=runs/x`.

A translator's graph includes the search of section 6.1 (Vaswani et al. 2017). `--format=onnx` and
`--format=litert` write a folder that translates without TensorFlow, `--format=web` a page for
browsers, and `--format=ctranslate2` the weights for that engine. A program that trains its own task
exports it by `export.run(MyTask)`: see `train`.
"""

from keras_transformer import flags
from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.runs.options import AdapterChoice
from keras_transformer.saved_models.options import ExportOptions, Version
from keras_transformer.tasks import TASKS, task_class
from keras_transformer.training.options import RunOptions, Seed

# Options of any task's export; each task adds its own.
SECTIONS = (RunOptions, Seed, ExportOptions, AdapterChoice, Version)
OF_TASKS = {name: task.export_options for name, task in TASKS.items()}


def main(FLAGS):
    from keras_transformer.runs.description import task_of
    from keras_transformer.runs.folder import RunFolder

    name = task_of(RunFolder(flags.required(FLAGS, "model_dir")).read_description())
    flags.refuse_foreign(name, FLAGS.model_dir)
    export(task_class(name), FLAGS)


def export(task, FLAGS):
    """Export the run of a task that the flags name."""
    from keras_transformer.runs.folder import RunFolder
    from keras_transformer.runs.run import exported
    from keras_transformer.saved_models.write import new_version
    from keras_transformer.streams import require_folder

    folder = RunFolder(flags.required(FLAGS, "model_dir"), added=FLAGS.adapter)
    values = flags.values(FLAGS, *SECTIONS, *task.export_options)
    path = folder.export_dir(FLAGS.export_dir)
    kind = values.get("format", "saved_model")
    if kind != "saved_model":
        path = FLAGS.export_dir or f"{path}_{kind}"
    require_folder(f"--export_dir={path}", path)
    if kind == "ctranslate2":
        names = flags.of_sections(DecodingOptions)
        flags.refuse(names, f"has no effect: {kind} has its own search")
        path = task.convert(folder, path, values)
        print(f"exported to {path}")
    else:
        # A version that exists is refused before the model is loaded.
        new_version(path, FLAGS.version)
        # The run was scored without the adapter.
        scores = {} if FLAGS.adapter else folder.read_scores()
        examples = folder.read_examples()
        description = {**folder.read_description(), **scores}
        precision = values.get("precision", "float32")
        if kind != "saved_model":
            values["precision"] = "float32"
        module = task.reload(folder, values)
        path = task.write(kind, module, path, description, examples, precision, FLAGS.version)
        print(exported("" if kind == "web" else task.trial, examples, path))


def run(task):
    """Run the command line of a program that exports its own task."""
    flags.run(lambda FLAGS: export(task, FLAGS), (*SECTIONS, *task.export_options), task=task)


if __name__ == "__main__":
    flags.run(main, SECTIONS, OF_TASKS)
