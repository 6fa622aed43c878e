"""What the command `import_model` makes of a folder, and what it refuses before it reads one."""

import json
import types

import numpy as np
import pytest
from eager import eagerly
from small_folders import BERT

from keras_transformer import import_model
from keras_transformer.imports.hugging_face import PretrainedFolder
from keras_transformer.tasks import imported
from pipelines.vocabularies.word_pieces import SPECIAL

PIECES = [*SPECIAL, "turn", "on", "the", "lamp", "##s", "off", "kitchen"]
TEXTS = ["turn on the kitchen lamps", "off"]
TAGS = {0: "O", 1: "B-name", 2: "I-name"}


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    """A tagger of transformers, and the folder that it was saved in."""
    torch = pytest.importorskip("torch", reason="install the extra [oracles]")
    transformers = pytest.importorskip("transformers", reason="install the extra [oracles]")
    pytest.importorskip("safetensors", reason="install the extra [oracles]")
    config = transformers.BertConfig(
        vocab_size=len(PIECES),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
        id2label=TAGS,
    )
    torch.manual_seed(1)
    model = transformers.BertForTokenClassification(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape)
        # Other words, other tags.
        model.bert.embeddings.word_embeddings.weight *= 10
        model.classifier.weight *= 10
    folder = tmp_path_factory.mktemp("tagger")
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    return folder, model


def test_a_bert_that_tags_words_keeps_its_tags(tagger):
    import torch

    folder, theirs = tagger
    task, module = imported.module_of(PretrainedFolder(folder))
    assert task == "tagging"
    assert module.facts()["labels"] == {"names": [*TAGS.values()]}
    with eagerly():
        found = module.tag(TEXTS)
    # A word is tagged by its first piece: "lamps" has two.
    for text, tags in zip(TEXTS, found["tags"].numpy(), strict=True):
        words = [f"{word[:4]} ##s" if word == "lamps" else word for word in text.split()]
        pieces = ["[CLS]", *" ".join(words).split(), "[SEP]"]
        ids = [PIECES.index(piece) for piece in pieces]
        with torch.no_grad():
            best = theirs(torch.tensor([ids])).logits.argmax(-1)[0].numpy()
        firsts = [n for n, piece in enumerate(pieces) if not piece.startswith(("##", "["))]
        assert [tag.decode() for tag in tags if tag] == [TAGS[best[n]] for n in firsts]
    assert len(np.unique(found["tags"].numpy()[0])) > 1


def test_a_version_that_exists_is_told_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = {**BERT, "architectures": ["B"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "saved" / "3").mkdir(parents=True)

    class Given(dict):
        model_dir = "run"
        export_dir = "saved"
        version = 3
        source_language = target_language = None

    given = Given({"from": types.SimpleNamespace(value=".")})
    with pytest.raises(FileExistsError, match=r"saved/3 exists: a served version is never changed"):
        import_model.main(given)
    assert not (tmp_path / "run").exists()
    # A control: with another version the folder is read.
    given.version = 4
    with pytest.raises(ValueError, match=r"`architectures` of .*config\.json must be one of"):
        import_model.main(given)
