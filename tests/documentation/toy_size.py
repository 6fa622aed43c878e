"""Small files and values that replace big ones when the documentation's blocks run, and reasons not
to run others.
"""

import pathlib
import random
import shutil

import numpy as np
import tensorflow_datasets
import tfds_sets
from written import write_png

# A flag file is looked up in the working folder first, so that these take the place of the
# package's own: 20 steps on words to reverse.
TINY_FLAGS = """
--flagfile=toy.flags
--mixed_precision=float32
--source_language=en
--target_language=de
--max_steps=20
--validation_sentences=10
--protect=placeholders,tags,urls,emails,numbers
--norelease
"""
SMALL = """
--num_layers=1
--d_model=32
--d_ff=64
--num_heads=2
--max_steps=20
--norelease
"""
OF_TRANSLATORS = f"{SMALL}--vocabulary_size=400\n--validation_sentences=2\n"
# Likewise, on sets of TFDS, on the treebank of the tests, and on the text of `write_files`.
SETS = {
    "wmt14_translate/de-en": ("de", "en"),
    "wmt14_translate/fr-en": ("fr", "en"),
    "ted_hrlr_translate/pt_to_en": ("pt", "en"),
}
OF_WMT = f"--corpus=tfds\n--data_dir=my_sets\n--source_language=en{OF_TRANSLATORS}"
FLAG_FILES = {
    "tiny.flags": TINY_FLAGS,
    "base.flags": f"--dataset=wmt14_translate/de-en\n--target_language=de\n{OF_WMT}",
    "base_en_fr.flags": f"--dataset=wmt14_translate/fr-en\n--target_language=fr\n{OF_WMT}",
    "parsing_small.flags": f"--task=parsing\n--corpus=treebank{OF_TRANSLATORS}",
    "gpt.flags": f"--task=language_modelling{SMALL}--vocabulary_size=290\n",
    "bert.flags": f"--task=masking{SMALL}--vocabulary_size=290\n",
    "bert_intents.flags": f"--task=classification\n--corpus=intents{SMALL}--vocabulary_size=290\n",
    "bert_slots.flags": "--task=tagging\n--corpus=intents\n--target_language=slots"
    f"{SMALL}--vocabulary_size=290\n",
    "vit.flags": f"--task=image_classification\n--patch_size=2{SMALL}",
    "t5.flags": f"--corpus=mixture\n--norm=pre_rms\n--positions=relative{OF_TRANSLATORS}",
}
TREEBANK = pathlib.Path(__file__).parents[1] / "treebank"
# Text of the pages, and its replacement.
SMALLER = {
    '"home_assistant"': '"reverse"',  # A corpus that nobody has to download.
    "--corpus=tfds": "--corpus=tfds --data_dir=my_sets",
    "size=8000": "size=300",  # The vocabulary's.
    "num_layers=3, d_model=256, d_ff=1024": "num_layers=1, d_model=32, d_ff=64",
    "TransformerSchedule(256)": "TransformerSchedule(32)",
    "batches.updates_per_epoch, epochs=10": "3, epochs=1",
    "--layer=3": "--layer=1",
    # Our own server answers in place of TF Serving.
    "localhost:8501/v1/models/bert": "127.0.0.1:8501/v1/models/bert",
    "localhost:8501/v1/models/lines_en": "127.0.0.1:8501/v1/models/lines_en",
    "localhost:8501/v1/models/parsing_en": "127.0.0.1:8501/v1/models/parsing_en",
    "localhost:8501/v1/models/translator": "127.0.0.1:8501/v1/models/home_assistant_en_de",
}
NOT_RUN = {
    "make ": "installs, or takes long; tests/documentation checks that the target exists",
    "pip install": "needs a package index; tests/documentation checks that the extra exists",
    "--beam_options=": "needs a cluster",
    "export TF_CONFIG=": "needs two machines; see tests/integration/test_replicas.py",
    "--distribution=multi_worker": "needs two machines; see tests/integration/test_replicas.py",
    "--distribution=tpu": "needs a TPU; see docs/replicas.md, What was tested",
    "--format=web": "needs npm's registry; see tests/inference/test_web_page.py",
    "http.server": "serves until it is stopped; see tests/inference/test_web_page.py",
    "docker run": "needs Docker and TF Serving",
    "hugging_face.load(": "needs the weights of another package; see tests/imports",
    "import_model --from": "needs the weights of another package; see tests/imports",
    "--model=runs/flan_t5": "needs the weights of another package; see tests/imports",
    "--model=runs/opus_en_de": "needs the weights of another package; see tests/imports",
    "--model=runs/gpt2": "needs the weights of another package; see tests/imports",
    "--model=runs/nllb": "needs the weights of another package; see tests/imports",
    "models/nllb:predict": "needs the weights of another package; see tests/imports",
    "saved_models/opus_": "needs the weights of another package; see tests/imports",
    "--init_from=runs/opus_en_de": "needs the weights of another package; see tests/imports",
    "import grpc": "needs a server; tests/saved_models/test_session.py brings one and runs it",
}


def reason_not_to_run(code: str) -> str | None:
    """Why a command, or a Python block, is not run; None if it is."""
    return next((reason for part, reason in NOT_RUN.items() if part in code), None)


def smaller(code: str) -> str:
    """Replace the sizes of a block by toy sizes."""
    for big, small in SMALLER.items():
        code = code.replace(big, small)
    return code


def write_files(folder: pathlib.Path) -> None:
    """Write the files that the pages assume: flag files, and reversed words in place of English and
    German.
    """
    for name, text in FLAG_FILES.items():
        (folder / name).write_text(text)
    shutil.copytree(TREEBANK, folder / "my_trees")
    draw = random.Random(1)
    for corpus in ("my_text", "my_lines", "news"):
        (folder / corpus).mkdir()
        for split, count in (("train", 2000), ("valid", 20), ("test", 20)):
            lines = [" ".join(draw.choices("abcdefghijklmnopqrst", k=6)) for _ in range(count)]
            _write(folder / corpus / f"{split}.en", lines)
            _write(folder / corpus / f"{split}.de", [line[::-1] for line in lines])
    _write(folder / "news" / "more.de", lines)
    for dataset, languages in SETS.items():
        _write_set(folder / "my_sets", dataset, languages, draw)
    (folder / "my_topics").mkdir()
    for split in ("train", "valid", "test"):
        _write(folder / "my_topics" / f"{split}.en", ["a b c", "d e f"])
        _write(folder / "my_topics" / f"{split}.topic", ["early", "late"])
    _write_pictures(folder / "my_pictures")
    _write(folder / "lines.en", ["a b c d", "e f g"])
    _write(folder / "terms.tsv", ["a\tz", "b c\tb c"])
    _write(folder / "page.html", ["<p>a b <b>c</b></p>", "<p>d e</p>"])
    _write(folder / "other.txt", ["a b c", "h i"])
    _write(folder / "references.de", ["d c b a", "g f e"])
    _write(folder / "beginnings.de", ["d", ""])
    _write(folder / "raw.txt", ["Anna sings .", "A dog reads ( it )"])
    _write(folder / "sentences.trees", ["(S (NP (N a) (N b)) (V c))", "(S (N d) (V e))"])


def _write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _write_set(folder, dataset, languages, draw):
    """A set of TFDS' catalogue, whose sentences are words and the same words reversed."""
    splits = {}
    for split, count in (("train", 500), ("validation", 20), ("test", 20)):
        lines = [" ".join(draw.choices("abcdefghijklmnopqrst", k=6)) for _ in range(count)]
        splits[split] = [dict(zip(languages, (line, line[::-1]), strict=True)) for line in lines]
    tensorflow_datasets.disable_progress_bar()
    tfds_sets.prepare(dataset, folder, splits)


def _write_pictures(folder):
    """Twelve bright pictures and twelve dark ones, of 4 x 4 pixels."""
    draw = np.random.default_rng(1)
    for name, least in (("bright", 128), ("dark", 0)):
        (folder / name).mkdir(parents=True)
        for number in range(12):
            pixels = draw.integers(least, least + 128, (4, 4, 1), np.uint8)
            write_png(folder / name / f"{number}.png", pixels)
