"""The most memory that the import of a model takes that is as large as NLLB-200's of 600 million
weights: `python -m benchmarks.limits.import_memory FOLDER`, which needs 10 GB of disk.

Writes random weights of the model's sizes into FOLDER, imports them by the command `import_model`,
and prints the peak of the resident memory of its process, and of the process in which an export is
checked, beside the size of the file. Fails if the first is above 2.2 times the file.
"""

import io
import json
import pathlib
import struct
import subprocess
import sys
import time

import numpy as np
import sentencepiece
from absl import app, flags

from benchmarks.tables import print_table
from keras_transformer.imports import m2m_100
from pipelines.json_files import settings

MOST = 2.2
LABELS = ["deu_Latn", "eng_Latn", "fra_Latn"]
TEXT = ["a cat ran home", "eine Katze lief nach Hause", "un chat court"] * 8

LAYERS = flags.DEFINE_integer("layers", 12, "Layers of the encoder and of the decoder.")
PIECES = flags.DEFINE_integer("pieces", 256_206, "Rows of the table.")


def config():
    """What config.json says."""
    sides = ("encoder", "decoder")
    return {
        "model_type": m2m_100.MODEL_TYPE,
        "vocab_size": PIECES.value,
        "d_model": 1024,
        **{f"{side}_layers": LAYERS.value for side in sides},
        **{f"{side}_ffn_dim": 4096 for side in sides},
        **{f"{side}_attention_heads": 16 for side in sides},
    }


def write_weights(path, said):
    """Write a file of safetensors, one weight after the other."""
    read, _ = settings(m2m_100.Config, said, "config.json", "")
    shapes = {weight.theirs: weight.shape for weight in m2m_100.table(read)}
    header, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    random = np.random.default_rng(1)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for shape in shapes.values():
            for _ in range(shape[0]):
                row = random.standard_normal(int(np.prod(shape[1:])), np.float32)
                file.write((0.02 * row).tobytes())


def write_folder(folder):
    """Write the whole folder; returns the size of its weights."""
    folder.mkdir(parents=True)
    said = config()
    (folder / "config.json").write_text(json.dumps(said))
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (folder / m2m_100.SPM).write_bytes(model.getvalue())
    tokenizer = {"additional_special_tokens": LABELS, "src_lang": LABELS[1], "tgt_lang": LABELS[0]}
    (folder / m2m_100.TOKENIZER).write_text(json.dumps(tokenizer))
    # Random weights never end a translation.
    (folder / "generation_config.json").write_text(json.dumps({"max_length": 4}))
    write_weights(folder / "model.safetensors", said)
    return (folder / "model.safetensors").stat().st_size


def main(argv):
    folder = pathlib.Path(argv[1])
    size = write_folder(folder / "theirs")
    began = time.perf_counter()
    program = (
        "import atexit, builtins, resource, runpy, sys\n"
        "kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)\n"
        "peaks = lambda: [resource.getrusage(kind).ru_maxrss * 1024 for kind in kinds]\n"
        "write = print\n"
        "def told(*words, **how): write(f'{peaks()[0] / 1e9:.2f} GB:', *words, **how)\n"
        "builtins.print = told\n"
        "atexit.register(lambda: write('peaks', *peaks()))\n"
        "sys.argv[0] = 'import_model'\n"
        "runpy.run_module('keras_transformer.import_model', run_name='__main__')\n"
    )
    arguments = [f"--from={folder / 'theirs'}", f"--model_dir={folder / 'run'}"]
    arguments += [f"--export_dir={folder / 'saved'}"]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], check=True, capture_output=True, text=True
    )
    own, checking = map(int, done.stdout.splitlines()[-1].split()[1:])
    print("\n".join(done.stdout.splitlines()[:-1]))
    rows = [["weights", size, 1.0], ["import_model", own, own / size]]
    rows += [["the check of its export", checking, checking / size]]
    seconds = time.perf_counter() - began
    print_table(
        ["what", "GB", "times the file"],
        [[name, f"{one / 1e9:.2f}", f"{times:.2f}"] for name, one, times in rows],
    )
    print(f"{seconds:.0f} s")
    sys.exit(own > MOST * size)


if __name__ == "__main__":
    app.run(main)
