"""Import another program's model as a run and a SavedModel: a translator of Marian, OpenNMT-tf or
Hugging Face (MarianMT, M2M100, NLLB-200), a T5, a GPT-2, a BERT or a ViT. `python
-m keras_transformer.import_model --from=FOLDER --model_dir=runs/opus_en_de`.

A folder of Marian, such as a release of OPUS-MT, has decoder.yml and the files that it names,
source.spm and target.spm. One of OpenNMT-tf is a model_dir, with config.yml, vocabularies and
SentencePiece models in it or in the two folders above. One of Hugging Face has config.json,
*.safetensors and its vocabulary: a MarianMT's is source.spm, target.spm and vocab.json, an M2M100's
or NLLB-200's sentencepiece.bpe.model, a T5's spiece.model, a GPT-2's vocab.json and merges.txt, and
a BERT's vocab.txt or tokenizer.json. `train --init_from` fine-tunes the run. A BERT's SavedModel
gives sentence vectors, and predicts masked words, labels or tags if the model has a head for them.
A ViT's SavedModel classifies images.
"""

from keras_transformer import flags
from keras_transformer.flags.of_commands import ImportOptions, Languages
from keras_transformer.saved_models.options import ExportOptions, Version
from keras_transformer.training.options import RunOptions

SECTIONS = (ImportOptions, Languages, RunOptions, ExportOptions, Version)


def main(FLAGS):
    from keras_transformer.runs.folder import RunFolder
    from keras_transformer.saved_models import write
    from keras_transformer.startup import give_all_memory_back
    from keras_transformer.streams import require_folder
    from keras_transformer.tasks import imported
    from pipelines.whole_files import whole_folder

    origin = flags.required(FLAGS, "from")
    give_all_memory_back()
    run = RunFolder(flags.required(FLAGS, "model_dir"))
    if run.path.exists():
        raise FileExistsError(f"{run.path} exists. Name another --model_dir, or delete it.")
    export_dir = run.export_dir(FLAGS.export_dir)
    if export_dir.resolve().is_relative_to(run.path.resolve()):
        raise ValueError(
            f"--export_dir must lie outside of --model_dir={run.path}, which is written whole. "
            f"Received: --export_dir={export_dir}. Name another folder, or leave it out."
        )
    for name, path in {"model_dir": run.path, "export_dir": export_dir}.items():
        require_folder(f"--{name}={path}", path)
    write.new_version(export_dir, FLAGS.version)
    folder = imported.opened(origin)
    task, module = imported.module_of(folder, flags.languages(FLAGS))
    weights = sum(variable.shape.num_elements() for variable in module.weights)
    print(f"{folder.path}: {task}, {weights:,} weights read", flush=True)
    description = imported.description(task, module, origin)
    # A failed export leaves no run, which a second try would refuse.
    with whole_folder(run.path) as temporary:
        imported.write_run(temporary, description, module)
        print("The run is written, and the SavedModel follows", flush=True)
        path = write.export(module, export_dir, description, version=FLAGS.version)
    if unused := folder.unused_parts():
        print(unused)
    print(f"{task} in {run.path}, exported to {path}")


if __name__ == "__main__":
    flags.run(main, SECTIONS)
