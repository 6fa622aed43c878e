"""A translator of Marian's format, written with NumPy: imported, it computes what Marian's formulas
give in float64; what cannot be imported is refused in one line; our rules replace what
preprocess.sh replaces.
"""

import itertools
import re
import shutil
import subprocess

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from command_flags import flags_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles.paper import layer_norm, scaled_dot_product_attention
from small_folders import TEXTS, learned
from small_model import eager_training, eagerly

from keras_transformer import train
from keras_transformer.imports.family import NEVER
from keras_transformer.imports.marian import DECODER, SETTINGS, MarianFolder
from keras_transformer.imports.marian_files import Arrays
from keras_transformer.imports.preprocessing import PREPROCESS, read_rules
from keras_transformer.runs.folder import RunFolder
from keras_transformer.tasks import imported, task_class
from pipelines.special_ids import BOS, EOS, PAD, UNK

WIDTH, INNER, HEADS = 16, 24, 2
DEPTHS = {"encoder": 2, "decoder": 1}
CONFIG = {
    "type": "transformer",
    "dim-emb": WIDTH,
    "enc-depth": DEPTHS["encoder"],
    "dec-depth": DEPTHS["decoder"],
    "transformer-heads": HEADS,
    "transformer-dim-ffn": INNER,
    "transformer-ffn-activation": "swish",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-top": "",
    "transformer-ffn-depth": 2,
    "tied-embeddings-all": True,
    "version": "v1.12",
}
DECODING = {
    "relative-paths": True,
    "models": ["model.npz"],
    "vocabs": ["vocab.yml", "vocab.yml"],
    "beam-size": 2,
    "normalize": 1,
    "word-penalty": 0,
}


def arrays_of(pieces, rng):
    """Weights by Marian's names."""
    arrays = {"Wemb": rng.normal(size=(pieces, WIDTH)) * 0.3}
    arrays["decoder_ff_logit_out_b"] = rng.normal(size=(1, pieces))
    for side, depth in DEPTHS.items():
        attentions = ("self",) if side == "encoder" else ("self", "context")
        for number in range(1, depth + 1):
            layer = f"{side}_l{number}"
            for attention in attentions:
                for letter in "qkvo":
                    arrays[f"{layer}_{attention}_W{letter}"] = rng.normal(size=(WIDTH, WIDTH)) * 0.3
                    arrays[f"{layer}_{attention}_b{letter}"] = rng.normal(size=(1, WIDTH))
                arrays[f"{layer}_{attention}_Wo_ln_scale"] = rng.normal(size=(1, WIDTH))
                arrays[f"{layer}_{attention}_Wo_ln_bias"] = rng.normal(size=(1, WIDTH))
            for number_of_map, shape in ((1, (WIDTH, INNER)), (2, (INNER, WIDTH))):
                arrays[f"{layer}_ffn_W{number_of_map}"] = rng.normal(size=shape) * 0.3
                arrays[f"{layer}_ffn_b{number_of_map}"] = rng.normal(size=(1, shape[1]))
            arrays[f"{layer}_ffn_ffn_ln_scale"] = rng.normal(size=(1, WIDTH))
            arrays[f"{layer}_ffn_ffn_ln_bias"] = rng.normal(size=(1, WIDTH))
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def as_yaml(value):
    import yaml

    return yaml.safe_dump(value)


def settings_array(config):
    return np.frombuffer(as_yaml(config).encode() + b"\0", np.int8)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A whole folder, its pieces by Marian's ids, and its arrays."""
    # Not for the whole module: the tests of preprocess.sh need no yaml.
    pytest.importorskip("yaml", reason="install the extra [imports]")
    folder = tmp_path_factory.mktemp("marian")
    names = set()
    for name, lines in TEXTS.items():
        model = learned(lines)
        (folder / name).write_bytes(model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        names |= {processor.id_to_piece(number) for number in range(3, processor.vocab_size())}
    # Pieces that YAML does not read as strings without quotes.
    names |= {"no", "~", "1_000", ":", ">>deu<<"}
    pieces = ["</s>", "<unk>", *sorted(names)]
    arrays = arrays_of(len(pieces), np.random.default_rng(7))
    np.savez(folder / "model.npz", **arrays, **{SETTINGS: settings_array(CONFIG)})
    lines = [f"{as_yaml(piece).split(chr(10))[0]}: {n}" for n, piece in enumerate(pieces)]
    (folder / "vocab.yml").write_text("\n".join(lines), encoding="utf-8")
    (folder / DECODER).write_text(as_yaml(DECODING), encoding="utf-8")
    return folder, pieces, arrays


@pytest.fixture(scope="module")
def module(whole):
    return imported.module_of(MarianFolder(whole[0]))[1]


class Marian:
    """Marian's formulas in float64, for one sentence of its own ids."""

    # From the first wavelength of the positions to the last. The paper has one step more.
    steps = WIDTH // 2 - 1

    def __init__(self, arrays):
        self.arrays = {name: array.astype(np.float64) for name, array in arrays.items()}

    def log_probabilities(self, source, target):
        """Log P of each piece of a target that is closed by `</s>`, as the source is."""
        arrays = self.arrays
        memory = self.embedded(arrays["Wemb"][source])
        for number in range(1, DEPTHS["encoder"] + 1):
            memory = self.layer(f"encoder_l{number}", memory, None)
        started = np.concatenate([np.zeros((1, WIDTH)), arrays["Wemb"][target[:-1]]])
        x = self.embedded(started)
        for number in range(1, DEPTHS["decoder"] + 1):
            x = self.layer(f"decoder_l{number}", x, memory)
        logits = x @ arrays["Wemb"].T + arrays["decoder_ff_logit_out_b"]
        logits -= logits.max(axis=-1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        return logits[np.arange(len(target)), target]

    def embedded(self, rows):
        half = WIDTH // 2
        angles = np.arange(len(rows))[:, None] / 10000.0 ** (np.arange(half) / self.steps)
        return rows * WIDTH**0.5 + np.concatenate([np.sin(angles), np.cos(angles)], axis=1)

    def layer(self, name, x, memory):
        mask = None if memory is None else np.tri(len(x))
        x = self.normed(f"{name}_self_Wo", x + self.attended(f"{name}_self", x, x, mask))
        if memory is not None:
            looked = self.attended(f"{name}_context", x, memory, None)
            x = self.normed(f"{name}_context_Wo", x + looked)
        inner = x @ self.arrays[f"{name}_ffn_W1"] + self.arrays[f"{name}_ffn_b1"]
        inner = inner / (1 + np.exp(-inner))
        outer = inner @ self.arrays[f"{name}_ffn_W2"] + self.arrays[f"{name}_ffn_b2"]
        return self.normed(f"{name}_ffn_ffn", x + outer)

    def attended(self, name, x, memory, mask):
        def mapped(letter, x):
            return x @ self.arrays[f"{name}_W{letter}"] + self.arrays[f"{name}_b{letter}"]

        def heads(x):
            return x.reshape(len(x), HEADS, -1).swapaxes(0, 1)

        query, key, value = (
            heads(mapped(*pair)) for pair in (("q", x), ("k", memory), ("v", memory))
        )
        looked = scaled_dot_product_attention(query, key, value, mask)
        return mapped("o", looked.swapaxes(0, 1).reshape(len(x), -1))

    def normed(self, name, x):
        return layer_norm(x, self.arrays[f"{name}_ln_scale"], self.arrays[f"{name}_ln_bias"])


def test_scores_are_those_of_marians_formulas(whole, module):
    folder, pieces, arrays = whole
    cutter = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    text = "no red cats at home"
    source_ids = [pieces.index(piece) for piece in cutter.encode(text, out_type=str)] + [0]
    target = [*np.random.default_rng(1).integers(2, len(pieces), size=9), 0]
    expected = Marian(arrays).log_probabilities(source_ids, target)
    ours = module.vocabulary.target.pieces
    ids = [EOS if number == 0 else ours.index(pieces[number]) for number in target]
    with eagerly():
        source = module.source_ids(tf.constant([text])).to_tensor()
        scores = module._graphs.log_probabilities(source, tf.constant([ids]))
    np.testing.assert_allclose(scores[0], expected, atol=1e-4)
    # A control: the paper's positions give other scores.
    paper = Marian(arrays)
    paper.steps += 1
    assert np.abs(paper.log_probabilities(source_ids, target) - expected).max() > 1e-3


def test_text_is_cut_as_the_models_of_each_language_cut_it(whole, module):
    folder, pieces, _ = whole
    for name, side in zip(TEXTS, ("source", "target"), strict=True):
        theirs = sentencepiece.SentencePieceProcessor(model_file=str(folder / name))
        vocabulary = getattr(module.vocabulary, side)
        ours = [piece.replace("\u2581>>", ">>") for piece in vocabulary.pieces]
        assert ours[len((PAD, UNK, BOS, EOS)) :] == pieces[2:]
        for text in [*TEXTS[name], "a  cat", "cat", ""]:
            [ids] = vocabulary.tokenize(tf.constant([text])).to_list()
            assert [vocabulary.pieces[n] for n in ids[:-1]] == theirs.encode(text, out_type=str)


def test_a_character_that_only_the_other_language_has_is_looked_up(module):
    vocabulary = module.vocabulary
    source = vocabulary.source
    only_there = next(
        piece
        for piece in vocabulary.target.pieces[4:]
        if len(piece) == 1 and piece.isalpha() and piece not in "".join(TEXTS["source.spm"])
    )
    [ids] = source.tokenize(tf.constant([f"a {only_there}"])).to_list()
    assert source.pieces.index(only_there) in ids
    [ids] = source.tokenize(tf.constant(["a \u65e5"])).to_list()
    assert UNK in ids


def test_a_label_is_one_piece_before_the_text(module):
    source = module.vocabulary.source
    plain, labelled = source.tokenize(tf.constant(["a cat", ">>deu<< a cat"])).to_list()
    assert labelled == [source.pieces.index("\u2581>>deu<<"), *plain]


def test_a_translator_replaces_before_it_cuts(whole, tmp_path):
    plain = imported.module_of(MarianFolder(whole[0]))[1]
    folder = tmp_path / "release"
    folder.mkdir()
    spoiled(whole, folder, {})
    (folder / PREPROCESS).write_text("sed -e 's/％/a red /g' -e 's/ *$/ home/g' |\n")
    module = imported.module_of(MarianFolder(folder))[1]
    for text, as_plain in (("％ cat", "a red cat home"), ("no", "no home")):
        ids = module.source_ids(tf.constant([text])).to_list()
        assert ids == plain.source_ids(tf.constant([as_plain])).to_list()
    # The rules are in the vocabulary's file, so that a run and a SavedModel have them too.
    module.write_files(tmp_path)
    saved = (tmp_path / "vocabulary.source.model").read_bytes()
    assert type(module.vocabulary.source)(saved).tokenize(tf.constant(["％"])).to_list() == (
        plain.source_ids(tf.constant(["a red home"])).to_list()
    )
    target = module.vocabulary.target
    assert target.tokenize(tf.constant(["％"])).to_list() == (
        plain.vocabulary.target.tokenize(tf.constant(["％"])).to_list()
    )


def test_it_decodes_as_decoder_yml_says_and_never_writes_what_marian_bars(whole, module):
    options = module.options
    assert (options.beam_size, options.length_penalty, options.max_length) == (2, 1.0, "3x")
    assert (options.length_penalty_form, options.beam_form) == ("length", "shrinking")
    assert options.barred == (UNK,)
    bias = dict(zip(module._paths, module.weights, strict=True))["embedding/output_bias"].numpy()
    assert bias[[PAD, BOS]].tolist() == [NEVER, NEVER]
    with eagerly():
        details = module.translate_in_detail(tf.constant(["a red cat"] * 2), tf.constant(["", ""]))
    pieces = set(details["pieces"].numpy().reshape(-1).tolist())
    assert not pieces & {b"<unk>", b"<s>", b"<pad>"}


def broken(name, value):
    return {"settings": {**CONFIG, name: value}}


BAD = {
    "of another type": (broken("type", "s2s"), r"`type` of .* must be one of transformer"),
    "an average": (broken("transformer-decoder-autoreg", "average-attention"), "one of self-att"),
    "trained positions": (broken("transformer-train-position-embeddings", True), "embeddings` of"),
    "factors": (broken("lemma-dim-emb", 8), "`lemma-dim-emb` of"),
    "lemmas": (broken("lemma-dependency", "hard"), '`lemma-dependency` of .* must be ""[.] Rec'),
    "norms elsewhere": (broken("transformer-postprocess", "dna"), "Received: /na/"),
    "an unknown setting": (broken("transformer-new-idea", 1), "do not know: transformer-new-idea"),
    "another width": (broken("dim-emb", 8), r"Wemb is \(\d+, 16\), expected \(\d+, 8\)"),
    "more layers": (broken("enc-depth", 10**9), "lacks the weight encoder_l3_self_Wq"),
    "no width": ({"settings": dict([*CONFIG.items()][:1])}, "lacks dim-emb"),
    "a word for a number": (broken("dec-depth", "two"), "`dec-depth` of .* `int`"),
    "a vocabulary": ({"decoder": {**DECODING, "vocabs": ["vocab.yml"]}}, "named twice. Received"),
    "two models": ({"decoder": {**DECODING, "models": ["a.npz", "b.npz"]}}, "must be one file"),
    "a file elsewhere": ({"decoder": {**DECODING, "models": ["../model.npz"]}}, "files beside it"),
    "a word penalty": ({"decoder": {**DECODING, "word-penalty": 0.3}}, "`word-penalty` of"),
    "a negative penalty": ({"decoder": {**DECODING, "normalize": -1}}, "`normalize` of .*yml must"),
    "no end of it": ({"decoder": {**DECODING, "normalize": np.inf}}, "`normalize` of .*yml must"),
    "no room": ({"decoder": {**DECODING, "max-length-factor": 0}}, "`max-length-factor` of .*yml"),
    "a date": ({DECODER: b"vocabs: [a]\nmodels: [b]\nbeam-size: 2020-01-01\n"}, '"2020-01-01"[.]'),
    "bytes": ({DECODER: b"skip-cost: !!binary aGVsbG8=\nmodels: []\nvocabs: []\n"}, "b'hello'"),
    "no YAML": ({DECODER: b"models: [a\n"}, "is no YAML"),
    "a list": ({DECODER: b"- a\n"}, "must be a mapping"),
    "not UTF-8": ({"vocab.yml": b"\xff: 0"}, "must be UTF-8"),
    "ids with a gap": ({"vocab.yml": b"</s>: 0\n<unk>: 1\na: 3\n"}, "number its 3 pieces from 0"),
    "an endless id": ({"vocab.yml": b"</s>: 0\n<unk>: 1\na: " + b"9" * 5000}, "its 3 pieces from"),
    "no end": ({"vocab.yml": b"a: 0\n<unk>: 1\n"}, "lacks the piece </s>"),
    "no archive": ({"model.npz": b"weights"}, "is no .npz of Marian"),
    "a pickle": ({"pickle": True}, "is damaged|must be int8"),
    "no numbers": ({"weight": ("Wemb", np.nan)}, "Wemb must have finite numbers"),
    "float64": ({"dtype": np.float64}, "must be float32. Received: float64"),
    "no SentencePiece": ({"source.spm": b"pieces"}, "source.spm is not a SentencePiece model"),
    "no unknown piece": ({"source.spm": b"\x12\x00"}, "source.spm is not a SentencePiece model"),
}


def spoiled(whole, folder, fault):
    """A copy of the folder with a fault."""
    source, _, arrays = whole
    shutil.copytree(source, folder, dirs_exist_ok=True)
    config = settings_array(fault.get("settings", CONFIG))
    if "weight" in fault:
        name, value = fault["weight"]
        arrays = {**arrays, name: np.full_like(arrays[name], value)}
    if "dtype" in fault:
        arrays = {name: array.astype(fault["dtype"]) for name, array in arrays.items()}
    if "pickle" in fault:
        config = np.array([{"a": 1}], dtype=object)
    np.savez(folder / "model.npz", **arrays, **{SETTINGS: config})
    if "decoder" in fault:
        (folder / DECODER).write_text(as_yaml(fault["decoder"]))
    for name, content in fault.items():
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_imported_is_refused_in_one_line(whole, tmp_path, name):
    fault, message = BAD[name]
    folder = spoiled(whole, tmp_path, fault)
    with pytest.raises(ValueError, match=message) as raised:
        imported.module_of(MarianFolder(folder))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["source.spm", "vocab.yml", "model.npz"])
def test_a_missing_file_is_named(whole, tmp_path, name):
    (spoiled(whole, tmp_path, {}) / name).rename(tmp_path / "source.bpe")
    moses = ".* needs Moses' tokenizer" if name == "source.spm" else ""
    with pytest.raises(FileNotFoundError, match=re.escape(f"has no {name}") + moses):
        imported.module_of(MarianFolder(tmp_path))


def test_a_piece_that_is_no_utf_8_is_refused(whole, tmp_path):
    model = spoiled(whole, tmp_path, {}) / "source.spm"
    content = model.read_bytes()
    model.write_bytes(content.replace(b"\xe2\x96\x81r", b"\xe2\x96\x81\xff"))
    assert model.read_bytes() != content
    with pytest.raises(ValueError, match=r"source\.spm is not a SentencePiece model"):
        imported.module_of(MarianFolder(tmp_path))


def test_damaged_arrays_are_refused_or_read_as_they_were(tmp_path):
    """An array longer than 4 kB is checked behind its header."""
    path = tmp_path / "model.npz"
    np.savez(path, Wemb=np.ones((40, 50), np.float32))
    whole = path.read_bytes()
    refused = 0
    places = [*range(200), *range(len(whole) - 120, len(whole) - 60)]
    # At each byte, once a bit is flipped and once 64 bytes are zeroed.
    for place, is_lost in itertools.product(places, (False, True)):
        damaged = bytes(64) if is_lost else bytes([whole[place] ^ 0x20])
        path.write_bytes(whole[:place] + damaged + whole[place + len(damaged) :])
        try:
            arrays = Arrays(path)
            if arrays.shape("Wemb") == (40, 50):
                assert (arrays["Wemb"] == 1).all()
        except ValueError as error:
            refused += "is damaged" in str(error) or "lacks the weight" in str(error)
    assert refused > 300


def test_a_whole_folder_has_no_fault(whole, tmp_path):
    cut = {"models": ["./model.npz"], "max-length": 512, "max-length-crop": True}
    folder = MarianFolder(spoiled(whole, tmp_path, {"decoder": {**DECODING, **cut}}))
    assert folder.model().hyperparameters.num_decoder_layers == DEPTHS["decoder"]
    assert folder.unused_parts() == ""


def test_the_vocabulary_may_be_a_sentencepiece_model(whole, tmp_path):
    lines = [*itertools.chain.from_iterable(TEXTS.values())]
    model = learned(lines, size=40, eos_id=0, unk_id=1, bos_id=-1, pad_id=-1)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model)
    arrays = arrays_of(theirs.vocab_size(), np.random.default_rng(7))
    vocabs = {"decoder": {**DECODING, "vocabs": ["./joint.spm"] * 2}, "joint.spm": model}
    spoiled((whole[0], None, arrays), tmp_path, vocabs)
    for name in TEXTS:
        (tmp_path / name).unlink()
    module = imported.module_of(MarianFolder(tmp_path))[1]
    table = dict(zip(module._paths, module.weights, strict=True))["embedding/table"].numpy()
    for side, text in itertools.product(("source", "target"), lines):
        [ids] = getattr(module.vocabulary, side).tokenize(tf.constant([text])).to_list()
        np.testing.assert_array_equal(table[ids], arrays["Wemb"][[*theirs.encode(text), 0]])


def test_it_is_trained_on_with_its_own_sizes_vocabulary_and_decoding(whole, tmp_path, capsys):
    """Its two vocabularies have equal pieces in equal order, so that they can share a table."""
    origin = tmp_path / "imported"
    task, module = imported.module_of(MarianFolder(whole[0]))
    imported.write_run(origin, imported.description(task, module, "x"), module)
    flags = ("--corpus=reverse", "--max_steps=1", "--batch_tokens=512", "--norelease")
    few = (*flags, "--validation_sentences=0", "--mixed_precision=float32")
    FLAGS = flags_of("train", f"--init_from={origin}", f"--model_dir={tmp_path / 'tuned'}", *few)
    with eager_training():
        train.train(task_class("translation"), FLAGS)
    assert f"{module.vocabulary.size:,} pieces keep their embeddings, 0 are new" in (
        capsys.readouterr().out
    )
    before, now = (RunFolder(path).read_description() for path in (origin, tmp_path / "tuned"))
    for part in ("decoding", "imported"):
        assert now[part] == before[part]
    sizes = ("vocabulary_size", "num_layers", "num_decoder_layers", "d_model", "output_bias")
    for name in (*sizes, "tie_embeddings", "positions"):
        assert now["hyperparameters"][name] == before["hyperparameters"][name]
    files = ("vocabulary.source.model", "vocabulary.target.model")
    for name in files:
        assert (tmp_path / "tuned" / name).read_bytes() == (origin / name).read_bytes()


# A release's preprocess.sh: our rules replace what its sed and Perl replace.
SCRIPT = r"""#!/bin/bash
# USAGE preprocess.sh source-langid target-langid spmodel < input > output
SPMENCODE=`which spm_encode || echo "${PWD}/spm_encode"`

sed -e 's/，/,/g' \
    -e 's/。 */. /g' \
    -e 's/？/\?/g' \
    -e 's/（/\(/g' \
    -e 's/」/"/g' \
    -e 's/～/\~/g' \
    -e "s/’/\'/g" \
    -e 's/…/\.\.\./g' \
    -e 's/a+(b)/\\/g' \
    -e 's/〈/\</g' |
perl -C -pe  's/(?!\n)\p{C}/ /g;' |
perl -CIOE -pe 's/[\x{2060}\x{200B}\x{feff}]//g' |\
sed 's/  */ /g;s/^ *//g;s/ *$//g' |
${SPMENCODE} --model $3 |
sed "s/^/>>$2<< /"
"""
# Characters that the rules name, and others.
CHARACTERS = "，。？（」～’…〈 a+(b)|\\&é日\u00ad\u200b\u2060\ufeff\u0007\t\ue000\u0378"
QUIET = [HealthCheck.function_scoped_fixture]
LINES = st.lists(st.text(st.sampled_from(CHARACTERS), max_size=12), min_size=1, max_size=30)


def replaced(texts, rules):
    strings = tf.constant(texts)
    for pattern, rewrite in rules:
        strings = tf.strings.regex_replace(strings, pattern, rewrite)
    return [text.decode() for text in strings.numpy()]


def run(texts, script):
    """What the script makes of texts, without the pieces and the label."""
    process = subprocess.run(
        ["bash", "-c", script],
        input="".join(f"{text}\n" for text in texts).encode(),
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    )
    return process.stdout.decode().split("\n")[:-1]


@pytest.mark.skipif(not shutil.which("perl"), reason="no Perl")
@settings(max_examples=30, suppress_health_check=QUIET)
@given(texts=LINES)
def test_rules_are_what_sed_and_perl_replace(tmp_path, texts):
    path = tmp_path / PREPROCESS
    path.write_text(SCRIPT)
    pipe = SCRIPT[SCRIPT.index("sed -e") : SCRIPT.index("|\n${SPM")]
    assert replaced(texts, read_rules(path)) == run(texts, pipe)


UNKNOWN = {
    "another program": "tr a b |",
    "a class": "sed -e 's/[ab]/c/g' |",
    "what was found": "sed 's/a/&&/g' |",
    "what was found, behind a backslash": r"sed 's/a/\\&/g' |",
    "a tab": r"sed 's/a/\t/g' |",
    "the first of a line": "sed 's/a/b/' |",
    "another of Perl's": r"perl -C -pe 's/\s+/ /g;' |",
    "no replacement": "sed -e 'y/a/b/' |",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_another_line_is_refused_with_its_number(tmp_path, name):
    path = tmp_path / PREPROCESS
    path.write_text(f"#!/bin/bash\n{UNKNOWN[name]}\n")
    with pytest.raises(ValueError, match=r"line 2 of .*preprocess\.sh must replace") as raised:
        read_rules(path)
    assert "\n" not in str(raised.value)
