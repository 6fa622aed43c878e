"""A MarianMT that `transformers` makes at random and saves: as a run it gives the same logits, and
the strings of greedy and beam search.
"""

import json
import shutil

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from small_folders import TEXTS, change, learned, logits_of, translator
from small_model import eagerly
from theirs import random_of_theirs, torch, transformers

from keras_transformer.imports.hugging_face import PretrainedFolder
from keras_transformer.tasks import imported
from pipelines.special_ids import BOS, UNK

SENTENCES = ["no red cats run", ">>deu<< a red cat at home", "ran", "cats, no cats", "home home"]
LIMIT = 14


def pieces_of(*models):
    """Pieces by id, as a conversion of Marian has them."""
    names = {">>deu<<"}
    for model in models:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        names |= {processor.id_to_piece(number) for number in range(3, processor.vocab_size())}
    return ["</s>", "<unk>", *sorted(names)]


def saved(folder, separate, ties=True):
    """A model of transformers, saved in a folder."""
    models = [learned(lines) for lines in TEXTS.values()]
    for name, model in zip(TEXTS, models, strict=True):
        (folder / name).write_bytes(model)
    sides = [pieces_of(model) for model in models] if separate else [pieces_of(*models)]
    # transformers pads both sides with one id, the last of the shorter table.
    pad = min(map(len, sides))
    sides = [[*side[:pad], "<pad>", *side[pad:]] for side in sides]
    names = ["vocab.json", "target_vocab.json"]
    for name, side in zip(names, sides, strict=False):
        ids = {piece: number for number, piece in enumerate(side)}
        (folder / name).write_text(json.dumps(ids), encoding="utf-8")
    tokenizer = {"separate_vocabs": separate, "source_lang": "en", "target_lang": "de"}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    config = transformers.MarianConfig(
        vocab_size=len(sides[0]),
        decoder_vocab_size=len(sides[-1]),
        **translator(16, 24, encoder_layers=2),
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=pad,
        decoder_start_token_id=pad,
        share_encoder_decoder_embeddings=not separate,
        tie_word_embeddings=ties,
    )
    model = random_of_theirs(transformers.MarianMTModel, config, seed=3, scale=0.4)
    with torch.no_grad():
        model.final_logits_bias += torch.randn(model.final_logits_bias.shape)
        model.final_logits_bias[0, 0] += 2
    model.save_pretrained(folder)
    with pytest.warns(UserWarning, match="sacremoses"):
        return model, transformers.MarianTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module", params=["shared", "separate", "untied"])
def whole(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    separate = request.param != "shared"
    return folder, *saved(folder, separate, ties=request.param != "untied")


def decode_as(folder, **generation):
    """Write how a folder decodes, and import it."""
    pad = json.loads((folder / "config.json").read_text())["pad_token_id"]
    # For an unknown piece theirs writes nothing and ours a sign, and ours a space before a label.
    pieces = json.loads(min(folder.glob("*vocab.json")).read_text())
    words = [[pad], [UNK], [pieces[">>deu<<"]]]
    change(folder, "generation_config.json", bad_words_ids=words, max_length=LIMIT, **generation)
    return imported.module_of(PretrainedFolder(folder))[1]


def test_logits_are_those_of_transformers(whole, tmp_path):
    folder, theirs, tokenizer = whole
    # Other tests bar pieces in this file.
    without = shutil.ignore_patterns("generation_config.json")
    opened = PretrainedFolder(shutil.copytree(folder, tmp_path / "copy", ignore=without))
    module = imported.module_of(opened)[1]
    config = opened.config
    read = tokenizer(SENTENCES, return_tensors="pt", padding=True)
    size = config.sizes()[1]
    targets = np.random.default_rng(2).integers(0, size, size=(len(SENTENCES), 6))
    targets[:, 0] = config.decoder_start_token_id
    with torch.no_grad():
        expected = theirs(**read, decoder_input_ids=torch.tensor(targets)).logits.numpy()
    order = config.order(size).tolist()
    logits = logits_of(module, order, SENTENCES, targets)
    np.testing.assert_allclose(logits, expected[..., np.delete(order, BOS)], atol=1e-4)
    # A control: other words have other logits.
    assert np.abs(logits[0] - logits[1]).max() > 0.1


SEARCHES = {
    "greedy": {"num_beams": 1},
    "beam": {"num_beams": 4},
    "first": {"num_beams": 3, "early_stopping": True, "length_penalty": 0.5},
    "all": {"num_beams": 4, "early_stopping": "never", "length_penalty": 0.0},
    "a share for none": {"num_beams": 4, "renormalize_logits": True},
    "short": {"num_beams": None, "early_stopping": None, "max_new_tokens": 5},
}


# Each search with one layout of tables, and each layout with one search.
@pytest.mark.parametrize(
    ("whole", "name"),
    [*(("shared", name) for name in SEARCHES), ("separate", "beam"), ("untied", "beam")],
    indirect=["whole"],
)
def test_strings_are_those_of_transformers(whole, name):
    folder, theirs, tokenizer = whole
    defaults = {"early_stopping": False, "length_penalty": 1.0, "renormalize_logits": False}
    defaults["max_new_tokens"] = None
    module = decode_as(folder, **{**defaults, **SEARCHES[name]})
    # Theirs cuts off spaces at the ends.
    with eagerly():
        translations = module.translate(tf.constant(SENTENCES))["translation"].numpy()
    ours = [text.decode().strip() for text in translations]
    settings = transformers.GenerationConfig.from_pretrained(folder)
    read = tokenizer(SENTENCES, return_tensors="pt", padding=True)
    with torch.no_grad():
        ids = theirs.generate(**read, generation_config=settings)
    expected = tokenizer.batch_decode(ids, skip_special_tokens=True)
    if name == "all":
        # At the limit our score counts the end and theirs does not: leave such rows out.
        ended = [n for n, row in enumerate(ids) if 0 in row[: LIMIT - 1].tolist()]
        ours, expected = ([texts[n] for n in ended] for texts in (ours, expected))
    assert ours == expected
    # A control: the translations differ.
    assert name != "beam" or len({*ours}) > 1
