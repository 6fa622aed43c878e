"""Train with base.flags, on random text that TensorFlow Datasets writes under the name of WMT 2014,
whose own text is not available here.
"""

import json
import resource
import sys

import numpy as np
import pytest
from shell import printed
from written import prepare

from keras_transformer.inference.translator import Translator
from keras_transformer.runs.model_path import description_of

# All sizes are the paper's except these three: it has 100,000 updates of 25,000 tokens per side.
COMMAND = (
    *(sys.executable, "-m", "keras_transformer.train", "--flagfile=base.flags"),
    *("--max_steps=3", "--batch_tokens=1000", "--validation_sentences=2"),
)
WORDS = 40_000
SIZES = {"train": 10_000, "validation": 20, "test": 4}


def sentences():
    """Sentences of enough random words for as many pieces as the paper has."""
    draw = np.random.default_rng(1)
    letters = [*"abcdefghijklmnopqrstuvwxyzäöüß"]
    words = np.array(["".join(draw.choice(letters, draw.integers(2, 9))) for _ in range(WORDS)])
    return {
        split: [
            {language: " ".join(draw.choice(words, 12)) for language in ("de", "en")}
            for _ in range(count)
        ]
        for split, count in SIZES.items()
    }


@pytest.mark.slow
@pytest.mark.filterwarnings(r"ignore:label\(\) is deprecated:DeprecationWarning")
def test_base_flags_trains_scores_and_exports(tmp_path):
    folder = prepare("wmt14_translate/de-en", tmp_path / "sets", sentences())
    output = printed(*COMMAND, f"--data_dir={folder}", cwd=tmp_path)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(output, f"{peak:.1f} GiB at most")
    assert "63,045,632 parameters" in output
    [run] = (tmp_path / "runs").iterdir()
    history = (run / "history.jsonl").read_text().splitlines()
    assert json.loads(history[-1])["step"] == 3
    assert "bleu" in json.loads((run / "evaluation.json").read_text())
    [exported] = (tmp_path / "saved_models").iterdir()
    assert description_of(exported)["hyperparameters"]["vocabulary_size"] == 37_000
    assert len(Translator.load(exported).translate(["abc"])) == 1
