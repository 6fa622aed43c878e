"""A run's folder to a SavedModel, strings in, strings out: `python -m keras_transformer.export --model_dir=runs/x`.

The search of section 6.1 (Vaswani et al. 2017) goes into the graph.
"""

from keras_transformer import flags
from keras_transformer.serving.export import export
from keras_transformer.serving.model_folder import ModelFolder
from keras_transformer.serving.translation_module import TranslationModule
from keras_transformer.serving.translator import search

GROUPS = ("model_dir", "search", "export")


def main(FLAGS):
    folder = ModelFolder(flags.required_model_dir(FLAGS))
    module = TranslationModule(*folder.load(), search(FLAGS.beam_size, FLAGS.length_penalty))
    print(f"exported to {export(module, flags.export_dir(FLAGS, folder.path), folder.read_description())}")


if __name__ == "__main__":
    flags.run(main, GROUPS)
