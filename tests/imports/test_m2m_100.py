"""An M2M100 and an NLLB-200 that `transformers` makes at random: as a run each gives the same
logits, and the strings of greedy and beam search, for any pair of languages.
"""

import itertools
import json

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from drawn_models import Some, assert_alike
from exports import checks_here
from small_folders import TEXTS, change, learned, logits_of, translator
from small_model import eagerly
from theirs import random_of_theirs, torch, transformers

from keras_transformer.decoding.remembered_options import LANGUAGES
from keras_transformer.imports import m2m_100
from keras_transformer.imports.hugging_face import PretrainedFolder
from keras_transformer.inference import portable_export
from keras_transformer.inference.exported import Exported
from keras_transformer.inference.live import Live
from keras_transformer.inference.translator import Translator
from keras_transformer.saved_models import write
from keras_transformer.server.options import RequestError
from keras_transformer.server.portable_model import ServedPortable
from keras_transformer.tasks import imported
from keras_transformer.tasks.translation import choices
from keras_transformer.visualization.attended import Attended
from pipelines.special_ids import BOS

SENTENCES = ["no red cats run", "a red cat at home", "ran", "eine Katze lief nein"]
LABELS = {"m2m": ["__de__", "__en__", "__fr__"], "nllb": ["deu_Latn", "eng_Latn", "fra_Latn"]}
PAIRS = [(1, 0), (0, 2), (2, 1)]


class Theirs:
    """A model of transformers in a folder, and what it makes of text."""

    def __init__(self, folder, kind):
        model = learned([line for lines in TEXTS.values() for line in lines])
        (folder / m2m_100.SPM).write_bytes(model)
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        own = map(self.processor.id_to_piece, range(3, self.processor.vocab_size()))
        pieces = [*m2m_100.OF_FAIRSEQ, *own]
        self.languages = [label.strip("_") for label in LABELS[kind]]
        self.pieces = [*pieces, *LABELS[kind]]
        tokenizer = {"src_lang": self.languages[1], "tgt_lang": self.languages[0]}
        if kind == "m2m":
            ids = {piece: number for number, piece in enumerate(pieces)}
            (folder / "vocab.json").write_text(json.dumps(ids))
            added = {label: len(pieces) + number for number, label in enumerate(LABELS[kind])}
            (folder / m2m_100.ADDED).write_text(json.dumps(added))
        else:
            tokenizer["additional_special_tokens"] = LABELS[kind]
        (folder / m2m_100.TOKENIZER).write_text(json.dumps(tokenizer))
        config = transformers.M2M100Config(
            vocab_size=len(self.pieces) + 2,
            **translator(16, 24, encoder_layers=2),
        )
        kind = transformers.M2M100ForConditionalGeneration
        self.model = random_of_theirs(kind, config, seed=5, scale=0.3)
        self.model.save_pretrained(folder)
        self.folder = folder

    def label(self, number):
        return len(self.pieces) - len(self.languages) + number

    def ids(self, text, language):
        cut = self.processor.encode(text, out_type=str)
        numbers = [self.pieces.index(piece) if piece in self.pieces else 3 for piece in cut]
        return [self.label(language), *numbers, 2]

    def read(self, texts, language):
        rows = [self.ids(text, language) for text in texts]
        longest = max(map(len, rows))
        ids = torch.tensor([[*row, *[1] * (longest - len(row))] for row in rows])
        return {"input_ids": ids, "attention_mask": (ids != 1).long()}

    def translate(self, texts, source, target):
        settings = transformers.GenerationConfig.from_pretrained(self.folder)
        settings.forced_bos_token_id = self.label(target)
        with torch.no_grad():
            rows = self.model.generate(**self.read(texts, source), generation_config=settings)
        of_text = range(4, self.label(0))
        return [
            self.processor.decode([self.pieces[n] for n in row if n in of_text]).strip()
            for row in rows.tolist()
        ]


@pytest.fixture(scope="module", params=LABELS)
def theirs(request, tmp_path_factory):
    """A model of each kind. Kinds are read differently; what follows is tested with one of them."""
    return Theirs(tmp_path_factory.mktemp(request.param), request.param)


def module_of(theirs, **generation):
    # Bar what is no text, as theirs may write it: the start, an unknown piece, labels, unused rows.
    labels = range(theirs.label(0), len(theirs.pieces) + 2)
    words = [[number] for number in (0, 1, 3, *labels)]
    limit = {"max_length": 14, "forced_eos_token_id": 2}
    change(theirs.folder, "generation_config.json", bad_words_ids=words, **limit, **generation)
    return imported.module_of(PretrainedFolder(theirs.folder))[1]


def test_logits_are_those_of_transformers(theirs):
    module = module_of(theirs)
    config = PretrainedFolder(theirs.folder).config
    read = theirs.read(SENTENCES, 1)
    size = config.vocab_size
    targets = np.random.default_rng(2).integers(4, size, size=(len(SENTENCES), 6))
    targets[:, 0] = config.decoder_start_token_id
    with torch.no_grad():
        expected = theirs.model(**read, decoder_input_ids=torch.tensor(targets)).logits.numpy()
    order = config.order(size).tolist()
    logits = logits_of(module, order, SENTENCES, targets)
    np.testing.assert_allclose(logits, expected[..., np.delete(order, BOS)], atol=1e-4)


def test_training_takes_no_vocabulary_with_labels(theirs, monkeypatch):
    monkeypatch.setattr(choices, "vocabulary_of", lambda _: module_of(theirs).vocabulary)
    with pytest.raises(ValueError, match=r"of m has labels of languages, .* leave --vocabulary_f"):
        choices.vocabulary_with("m", [], None)


@pytest.mark.parametrize(
    ("theirs", "search"),
    [
        ("m2m", {"num_beams": 1}),
        ("m2m", {"num_beams": 4, "early_stopping": True}),
        ("m2m", {"num_beams": 3, "early_stopping": False, "length_penalty": 0.7}),
        ("nllb", {"num_beams": 4, "early_stopping": True}),
    ],
    ids=["greedy", "beam", "penalty", "beam of nllb"],
    indirect=["theirs"],
)
def test_any_pair_of_languages_is_translated_as_by_transformers(theirs, search):
    defaults = {"early_stopping": False, "length_penalty": 1.0}
    module = module_of(theirs, **{**defaults, **search})
    text = tf.constant(SENTENCES)
    expected = [theirs.translate(SENTENCES, *pair) for pair in PAIRS]
    # A control: the languages change the translations.
    assert len({*map(tuple, expected)}) > 1

    def ask(texts, pairs):
        sides = ([theirs.languages[number] for number in side] for side in zip(*pairs, strict=True))
        languages = dict(zip(LANGUAGES, map(tf.constant, sides), strict=True))
        with eagerly():
            rows = module.functions()["translate"](texts, **languages)
        return strings(rows["translations"][:, 0])

    assert ask(text, PAIRS[1:2]) == expected[1]
    with eagerly():
        assert strings(module.translate(text)["translation"]) == expected[0]
    # Each row may have its own languages.
    rows = ask(tf.repeat(text, len(PAIRS)), PAIRS * len(SENTENCES))
    assert rows == [*itertools.chain.from_iterable(zip(*expected, strict=True))]


@pytest.mark.parametrize("theirs", ["nllb"], indirect=True)
def test_graphs_of_onnx_have_the_labels_too(theirs, tmp_path):
    pytest.importorskip("tf2onnx", reason="install the extra [onnx]")
    module = module_of(theirs, num_beams=3, early_stopping=False, length_penalty=1.0)
    live = Live(module, module.gives_attention)
    folder = portable_export.export(module, tmp_path / "onnx", {}, SENTENCES[:2])
    served = ServedPortable(folder)
    assert set(LANGUAGES) <= set(served.signatures["translate"].defaults)
    for source, target in PAIRS:
        names = [theirs.languages[source], theirs.languages[target]]
        languages = dict(zip(LANGUAGES, names, strict=True))
        expected = theirs.translate(SENTENCES, source, target)
        assert stripped(Translator.load(folder, **languages).translate(SENTENCES)) == expected
        options = {name: np.array([label.encode()], object) for name, label in languages.items()}
        texts = np.array([line.encode() for line in SENTENCES], object)
        inputs = dict(served.signatures["translate"].defaults)
        outputs = served.run("translate", {**inputs, "text": texts, **options})
        assert stripped(text.decode() for text in outputs["translations"][:, 0]) == expected
    translator = Translator.load(folder)
    references = ["eine rote Katze", "x", "", "ran"]
    expected = live.score(SENTENCES, references)
    np.testing.assert_allclose(translator.score(SENTENCES, references), expected, rtol=1e-4)
    with checks_here():
        saved = write.export(Some(module, "serving_default"), tmp_path / "m", module.facts())
    for engine in (translator._model, Exported(saved, {}, module.facts())):
        assert engine.lengths(SENTENCES) == live.lengths(SENTENCES)
        assert engine.target_lengths(references) == live.target_lengths(references)
    prefixes = ["", "eine", "", "no"]
    details = (each.translate_in_detail(SENTENCES, prefixes) for each in (translator, live))
    assert_alike(*details, atol=1e-3)
    message = rf"^target_language=tlh: {folder} has {', '.join(sorted(theirs.languages))}\. Name"
    with pytest.raises(ValueError, match=message):
        Translator.load(folder, target_language="tlh")
    options["target_language"] = np.array([b"tlh"], object)
    with pytest.raises(RequestError, match=r"^target_language=tlh: "):
        served.run("translate", {**inputs, "text": texts, **options})


def stripped(texts):
    return [text.strip() for text in texts]


def strings(tensor):
    # A piece may be a space, which SentencePiece's Python leaves out at the ends.
    return stripped(text.decode() for text in tensor.numpy())


def test_an_unknown_language_is_refused_with_those_that_exist(theirs):
    module = module_of(theirs)
    request = module.functions()["translate"]
    graph = tf.function(module.labels.ids_of)
    languages = ", ".join(sorted(theirs.languages))
    for name in LANGUAGES:
        message = f"`{name}` must be one of"
        with eagerly(), pytest.raises(tf.errors.InvalidArgumentError, match=message):
            request(tf.constant(SENTENCES), **{name: tf.constant(["tlh"])})
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            graph(name, tf.constant(["tlh"]))
        with pytest.raises(ValueError, match=f"`{name}` must be one of {languages}.*=tlh"):
            imported.module_of(PretrainedFolder(theirs.folder), {name: "tlh"})


@pytest.mark.parametrize("theirs", ["m2m"], indirect=True)
def test_scores_and_links_leave_the_labels_out(theirs):
    module = module_of(theirs)
    live = Live(module, module.gives_attention)
    text, reference = SENTENCES[0], "eine rote Katze"
    source = theirs.read([text], 1)
    target = theirs.ids(reference, 0)
    with torch.no_grad():
        logits = theirs.model(**source, decoder_input_ids=torch.tensor([[2, *target[:-1]]])).logits
        expected = torch.log_softmax(logits, -1)[0, range(len(target)), target][1:].sum().item()
    [(score, tokens)] = live.score([text], [reference])
    assert score == pytest.approx(expected, abs=1e-4)
    assert tokens == len(target) - 1
    sources, targets, attention = live.cross_attention([text], [reference])
    assert attention.shape[-2:] == (targets.shape[1], sources.shape[1])
    assert sources.shape[1] == source["input_ids"].shape[1] - 1
    whole = Translator(module).attention(text, reference)
    for stack, name in {"encoder": "source_pieces", "decoder": "target_pieces"}.items():
        assert whole[name][0].strip("_") in theirs.languages
        assert Attended.of(whole, stack).rows[-1] == "(end)"
    [[best]] = live.translate_in_detail([text], [""])
    assert len(best.pieces) == len(best.log_probabilities)
    assert best.pieces[0].strip("_") not in theirs.languages
