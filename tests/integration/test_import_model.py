"""Random BERTs that transformers saves become runs and SavedModels of ours that give the same
answers.
"""

import json

import numpy as np
import pytest
from theirs import random_of_theirs, torch, transformers

from keras_transformer.inference.text_reader import TextReader
from pipelines.vocabularies.word_pieces import SPECIAL

pytestmark = pytest.mark.slow
WORDS = ("turn", "on", "the", "lamp", "##s", "off", ".", "kitchen")
PIECES = [*SPECIAL, *WORDS]
TEXTS = ["Turn on the [MASK].", "the kitchen [MASK] lamps", "off"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """{name: (folder, model)} of each kind of BERT, where the folder was saved from the model."""
    config = transformers.BertConfig(
        vocab_size=len(PIECES),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
        id2label={0: "light", 1: "time", 2: "none"},
    )
    folders_by_name = {}
    for name in ("BertForMaskedLM", "BertForSequenceClassification", "BertModel"):
        model = random_of_theirs(getattr(transformers, name), config, seed=1, scale=0.2)
        folder = tmp_path_factory.mktemp(name)
        model.save_pretrained(folder)
        (folder / "vocab.txt").write_text("\n".join(PIECES))
        folders_by_name[name] = (folder, model)
    return folders_by_name


def run_theirs(folder, model, texts):
    """The inputs that their tokenizer makes of texts, and the outputs of their model."""
    tokenizer = transformers.BertTokenizer(vocab=str(folder / "vocab.txt"), do_lower_case=True)
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        return inputs, model(**inputs)


def test_each_kind_answers_as_theirs_does(folders, fresh_shell):
    for name, (folder, _) in folders.items():
        fresh_shell.run("import_model", f"--from={folder}", f"--model_dir=runs/{name}")
    saved_models = fresh_shell.folder / "saved_models"
    readers = {name: TextReader.load(saved_models / name) for name in folders}

    inputs, output = run_theirs(*folders["BertForMaskedLM"], TEXTS[:2])
    guesses = readers["BertForMaskedLM"].guesses(TEXTS[:2])
    for row, [of_mask] in enumerate(guesses):
        [place] = torch.where(inputs["input_ids"][row] == PIECES.index("[MASK]"))[0]
        logits = output.logits[row, place].numpy().astype(np.float64)
        logits[: len(SPECIAL)] = -np.inf
        shares = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        best = PIECES[shares.argmax()]
        assert next(iter(of_mask)) == best
        assert of_mask[best] == pytest.approx(shares.max(), abs=1e-5)

    _, output = run_theirs(*folders["BertForSequenceClassification"], TEXTS)
    names = ("light", "time", "none")
    expected = [names[number] for number in output.logits.argmax(-1)]
    assert readers["BertForSequenceClassification"].labels(TEXTS) == expected

    inputs, output = run_theirs(*folders["BertModel"], TEXTS)
    real = inputs["attention_mask"][..., None]
    mean = (output.last_hidden_state * real).sum(1) / real.sum(1)
    expected = torch.nn.functional.normalize(mean).numpy()
    np.testing.assert_allclose(readers["BertModel"].vectors(TEXTS), expected, atol=1e-5)

    described = json.loads((fresh_shell.folder / "runs/BertForMaskedLM/model.json").read_text())
    assert described["task"] == "masking"
    fresh_shell.run("export", "--model_dir=runs/BertForMaskedLM", "--export_dir=again")
    assert TextReader.load(fresh_shell.folder / "again").guesses(TEXTS[:2]) == guesses
