"""A vocabulary for each language through all commands: training, resumption, translation by the run
and by its SavedModel, tuning, averaging, export, and fine-tuning.
"""

import json
import random

import pytest
from shell import Shell

from pipelines import vocabularies

pytestmark = pytest.mark.slow

RUN = "runs/mine"
SEPARATE = ("--vocabularies=separate", "--tie_embeddings=decoder")
TRAIN = (
    *("train", "--flagfile=toy.flags", "--mixed_precision=float32", "--corpus=text_files"),
    *("--data_dir=text", "--vocabulary_size=275", "--model_dir=runs/mine", *SEPARATE),
    *("--bpe_dropout=0.1", "--dropout=0.1", "--validation_sentences=10"),
)
LETTERS = "abcdefgh"
OTHERS = "zyxwvuts"
FILES = ["vocabulary.source.model", "vocabulary.target.model"]


def write_text(shell):
    """Write text whose languages share no letter."""
    draw = random.Random(1)
    (shell.folder / "text").mkdir()
    for split, count in (("train", 800), ("valid", 20), ("test", 20)):
        lines = [" ".join(draw.choices(LETTERS, k=6)) for _ in range(count)]
        targets = [line[::-1].translate(str.maketrans(LETTERS, OTHERS)) for line in lines]
        for language, side in (("words", lines), ("reversed", targets)):
            path = shell.folder / "text" / f"{split}.{language}"
            path.write_text("".join(f"{line}\n" for line in side))


@pytest.fixture(scope="module")
def shell(tmp_path_factory, warm, shared):
    """A `Shell` in the folder of a run that was resumed after 10 steps, with the text."""
    shell = Shell(tmp_path_factory.mktemp("separate"), warm)
    write_text(shell)
    shell.run(*TRAIN, "--max_steps=10", "--norelease")
    shell.run(*TRAIN, "--max_steps=20")
    shared.add(shell.folder)
    return shell


def test_the_run_and_its_export_have_both_files_and_their_fingerprint(shell):
    both = vocabularies.load(shell.folder / RUN)
    assert (both.kind, both.size) == ("separate", 275)
    version = shell.folder / "saved_models" / "mine" / "1"
    for folder in (shell.folder / RUN, version / "assets.extra"):
        assert sorted(path.name for path in folder.glob("vocabulary*")) == FILES
        assert vocabularies.load(folder).fingerprint == both.fingerprint
    for folder in (shell.folder / RUN, version):
        description = json.loads((folder / "model.json").read_text())
        assert description["vocabulary"]["fingerprint"] == both.fingerprint


def test_average_export_tune_and_train_take_separate_vocabularies(shell, tmp_path):
    pytest.importorskip("ctranslate2")
    copy = shell.copy(tmp_path / "copy")
    copy.run("average", f"--model_dir={RUN}", "--average_checkpoints=1")
    copy.run("export", f"--model_dir={RUN}", "--format=ctranslate2")
    copy.run("tune", f"--model={RUN}", "--beam_sizes=1,2", "--sentences=5", "--output=-")
    paths = copy.folder.glob("saved_models/*_ctranslate2/voc*")
    assert sorted(path.name for path in paths) == FILES
    tuned = ("--init_from=saved_models/mine", "--model_dir=runs/tuned")
    output = copy.run(*TRAIN, "--max_steps=2", "--norelease", *tuned).stdout.decode()
    assert ": 275 pieces keep their embeddings, 0 are new" in output


def test_training_on_records_uses_their_separate_vocabularies(fresh_shell):
    for package in ("apache_beam", "babel", "regex"):
        pytest.importorskip(package)
    write_text(fresh_shell)
    text = ("--corpus=text_files", "--data_dir=text", "--source_language=words")
    text = (*text, "--target_language=reversed", "--vocabulary_size=275", "--shards=1")
    records = ("--vocabularies=separate", "--output_dir=prepared")
    output = fresh_shell.run("prepare", *text, *records).stdout.decode()
    assert "learning a vocabulary of at most 275 pieces a language from 1,598 sentences" in output
    assert output.endswith("--data_dir=prepared --tie_embeddings=decoder\n")
    train = ("train", "--flagfile=toy.flags", "--corpus=records", "--data_dir=prepared")
    train = (*train, "--max_steps=2", "--norelease", "--validation_sentences=0")
    refused = fresh_shell(*train, f"--model_dir={RUN}")
    assert refused.returncode == 1
    assert b"error: vocabularies that are separate need --tie_embeddings=decoder" in refused.stderr
    fresh_shell.run(*train, f"--model_dir={RUN}", "--tie_embeddings=none")
    of_run, of_records = (
        vocabularies.load(fresh_shell.folder / folder) for folder in (RUN, "prepared")
    )
    assert of_run.fingerprint == of_records.fingerprint
    assert of_run.source.fingerprint != of_run.target.fingerprint
