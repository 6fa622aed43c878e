"""A run's folder to a SavedModel, strings in, strings out: `python -m keras_transformer.export
--model_dir=runs/x`.

The search of section 6.1 (Vaswani et al. 2017) goes into the graph. `--format=ctranslate2` writes
the weights for that engine instead.
"""

from keras_transformer import flags
from keras_transformer.artifacts import ctranslate2_model
from keras_transformer.artifacts.saved_model import export
from keras_transformer.decoding import DecodingOptions
from keras_transformer.runs.folder import RunFolder
from keras_transformer.translator.translation_module import TranslationModule

GROUPS = ("model_dir", "search", "decoding", "seed", "precision", "export", "version", "format")


def main(FLAGS):
    folder = RunFolder(flags.required_model_dir(FLAGS))
    export_dir = flags.export_dir(FLAGS, folder.path)
    description = folder.read_description()
    if FLAGS.format == "ctranslate2":
        if FLAGS.version or FLAGS.precision != "float32":
            raise ValueError(
                "--format=ctranslate2 writes one folder, in float32, which that engine rounds "
                "itself: leave out --version and --precision."
            )
        path = ctranslate2_model.convert(
            *folder.load(), FLAGS.export_dir or f"{export_dir}_ctranslate2", description
        )
    else:
        options = DecodingOptions(**flags.decoding_options(FLAGS))
        module = TranslationModule(*folder.load(precision=FLAGS.precision), options)
        path = export(
            module,
            export_dir,
            {**description, **folder.read_scores()},
            folder.read_examples(),
            FLAGS.version,
        )
    print(f"exported to {path}")


if __name__ == "__main__":
    flags.run(main, GROUPS)
