"""A translator of OpenNMT-tf's format, whose checkpoint is written here: imported, it computes what
the format's formulas give in float64; what cannot be imported is refused in one line.
"""

import shutil
import types

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from small_folders import learned
from small_model import eagerly

pytest.importorskip("yaml")

import yaml
from oracles.paper import feed_forward, layer_norm, scaled_dot_product_attention

from keras_transformer.imports.opennmt_tf import OpenNMTFolder
from keras_transformer.imports.opennmt_tf_checkpoint import CATALOG, read_description
from keras_transformer.tasks import imported
from pipelines.special_ids import EOS, UNK

WIDTH, INNER, HEADS, EPSILON = 16, 24, 2, 1e-3
DEPTHS = {"encoder": 2, "decoder": 1}
BLANK = ["<blank>", "<s>", "</s>"]
FEATURES = "examples_inputter/features_inputter/embedding"
LABELS = "examples_inputter/labels_inputter/embedding"
OUTPUT = "decoder/output_layer"
TEXTS = {
    "sp_en.model": ["no red cats run", "a red cat ran home", "no cats at home"] * 8,
    "sp_de.model": ["keine roten Katzen", "eine rote Katze lief", "nein, Katzen"] * 8,
}
DESCRIPTION = """import opennmt
def model():
    return opennmt.models.Transformer(
        num_layers=(2, 1), num_units=16, num_heads=2, ffn_inner_dim=24{more})
"""
CONFIG = {
    "model_dir": "run",
    "data": {
        "source_vocabulary": "en.txt",
        "target_vocabulary": "de.txt",
        "source_tokenization": {
            "type": "OpenNMTTokenizer",
            "params": {"mode": "none", "sp_model_path": "sp_en.model"},
        },
        "target_tokenization": {
            "type": "SentencePieceTokenizer",
            "params": {"model": "sp_de.model"},
        },
    },
    "params": {"beam_width": 2, "length_penalty": 0.6, "optimizer": "LazyAdam"},
    "train": {"max_step": 3},
}
# Forms of the model: more of its description, whether norms come first, and what is left out.
FORMS = {
    "as by default": ("", True, ()),
    "post-norm, shared": (
        ", mha_bias=False, pre_norm=False, output_layer_bias=False,"
        " share_embeddings=opennmt.models.EmbeddingsSharingLevel.ALL",
        False,
        ("linear_queries/bias", "linear_keys/bias", "linear_values/bias", "linear_output/bias"),
    ),
}


def arrays_of(sizes, is_pre, rng):
    """Weights by OpenNMT-tf's names."""
    shapes = {FEATURES: (sizes[0], WIDTH), LABELS: (sizes[1], WIDTH)}
    shapes |= {f"{OUTPUT}/kernel": (WIDTH, sizes[1]), f"{OUTPUT}/bias": (sizes[1],)}
    norms = []
    for stack, depth in DEPTHS.items():
        norms += [f"{stack}/layer_norm"] if is_pre else []
        for number in range(depth):
            layer = f"{stack}/layers/{number}"
            attentions = ["self_attention"] + ["attention/0"] * (stack == "decoder")
            for part in (*attentions, "ffn"):
                norms.append(f"{layer}/{part}/{'in' if is_pre else 'out'}put_layer_norm")
            for attention in attentions:
                for part in ("queries", "keys", "values", "output"):
                    linear = f"{layer}/{attention}/layer/linear_{part}"
                    shapes |= {f"{linear}/kernel": (WIDTH, WIDTH), f"{linear}/bias": (WIDTH,)}
            for part, shape in {"inner": (WIDTH, INNER), "outer": (INNER, WIDTH)}.items():
                dense = f"{layer}/ffn/layer/{part}"
                shapes |= {f"{dense}/kernel": shape, f"{dense}/bias": shape[1:]}
    for norm in norms:
        shapes |= {f"{norm}/gamma": (WIDTH,), f"{norm}/beta": (WIDTH,)}
    return {name: rng.normal(size=shape).astype("float32") * 0.4 for name, shape in shapes.items()}


def write_checkpoint(folder, arrays, shared=()):
    """A checkpoint as OpenNMT-tf writes it: paths that share one array have one variable."""
    root = tf.Module()
    variables = {}
    for name, array in arrays.items():
        *parts, last = name.split("/")
        node = root
        for part in parts:
            if not hasattr(node, part):
                setattr(node, part, tf.Module())
            node = getattr(node, part)
        key = next((paths[0] for paths in shared if name in paths), name)
        variables.setdefault(key, tf.Variable(array))
        setattr(node, last, variables[key])
    tf.train.Checkpoint(model=root, step=tf.Variable(3)).write(str(folder / "ckpt-3"))
    (folder / "checkpoint").write_text('model_checkpoint_path: "/elsewhere/ckpt-3"\n')


def write(folder, form="as by default", changed=lambda arrays: None, seed=7):
    """A folder with config.yml, whose run/ has the checkpoint; pieces and arrays by their names."""
    more, is_pre, without = FORMS[form]
    pieces = {}
    names = {"sp_en.model": "en.txt", "sp_de.model": "de.txt"}
    for name, lines in TEXTS.items():
        model = learned(lines)
        (folder / name).write_bytes(model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        own = [processor.id_to_piece(number) for number in range(3, processor.vocab_size())]
        pieces[name] = [*BLANK, *sorted(own)]
    if is_pre:
        # A vocabulary of another size.
        pieces["sp_en.model"] += ["\u2581home\u2581run", "\u2581more"]
    else:
        both = set(pieces["sp_en.model"]) | set(pieces["sp_de.model"])
        pieces = {name: [*BLANK, *sorted(both - set(BLANK))] for name in pieces}
    for name, side in pieces.items():
        (folder / names[name]).write_text("\n".join([*side, ""]), encoding="utf-8")
    run = folder / "run"
    run.mkdir()
    (run / "model_description.py").write_text(DESCRIPTION.format(more=more))
    (folder / "config.yml").write_text(yaml.safe_dump(CONFIG))
    sizes = [len(side) + 1 for side in pieces.values()]
    arrays = arrays_of(sizes, is_pre, np.random.default_rng(seed))
    arrays = {name: array for name, array in arrays.items() if not name.endswith(without)}
    shared = []
    if not is_pre:
        shared = [(FEATURES, LABELS, f"{OUTPUT}/kernel")]
        arrays[LABELS] = arrays[FEATURES]
        arrays[f"{OUTPUT}/kernel"] = arrays[FEATURES]
        del arrays[f"{OUTPUT}/bias"]
    changed(arrays)
    write_checkpoint(run, arrays, shared)
    return types.SimpleNamespace(
        folder=folder, pieces=list(pieces.values()), arrays=arrays, is_pre=is_pre
    )


@pytest.fixture(scope="module", params=FORMS)
def whole(request, tmp_path_factory):
    """A whole folder of each form."""
    return write(tmp_path_factory.mktemp("opennmt_tf"), request.param)


class OpenNMT:
    """OpenNMT-tf's formulas in float64, for one sentence of its own ids."""

    first = 1

    def __init__(self, written):
        self.arrays = {name: array.astype(np.float64) for name, array in written.arrays.items()}
        self.is_pre = written.is_pre

    def log_probabilities(self, source, target):
        """Log P of each piece of a target that ends in `</s>`; the source has no end."""
        memory = self.stack("encoder", self.embedded(FEATURES, source), None)
        x = self.stack("decoder", self.embedded(LABELS, [1, *target[:-1]]), memory)
        kernel = self.arrays[f"{OUTPUT}/kernel"]
        kernel = kernel if len(kernel) == WIDTH else kernel.T
        logits = x @ kernel + self.arrays.get(f"{OUTPUT}/bias", 0)
        logits -= logits.max(axis=-1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        return logits[np.arange(len(target)), target]

    def embedded(self, name, ids):
        half = WIDTH // 2
        places = np.arange(self.first, len(ids) + self.first)[:, None]
        angles = places / 10000.0 ** (np.arange(half) / (half - 1))
        positions = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
        return self.arrays[name][ids] * WIDTH**0.5 + positions

    def stack(self, name, x, memory):
        for number in range(DEPTHS[name]):
            layer = f"{name}/layers/{number}"
            mask = None if memory is None else np.tri(len(x), dtype=bool)
            x = self.sublayer(
                f"{layer}/self_attention", x, lambda y, place, m=mask: self.attended(place, y, y, m)
            )
            if memory is not None:
                x = self.sublayer(
                    f"{layer}/attention/0", x, lambda y, place: self.attended(place, y, memory)
                )
            x = self.sublayer(f"{layer}/ffn", x, self.mapped)
        return self.normed(f"{name}/layer_norm", x) if self.is_pre else x

    def sublayer(self, name, x, function):
        if self.is_pre:
            return x + function(self.normed(f"{name}/input_layer_norm", x), f"{name}/layer")
        return self.normed(f"{name}/output_layer_norm", x + function(x, f"{name}/layer"))

    def normed(self, name, x):
        return layer_norm(x, self.arrays[f"{name}/gamma"], self.arrays[f"{name}/beta"], EPSILON)

    def mapped(self, x, name):
        paths = [
            f"{name}/{part}/{kind}" for part in ("inner", "outer") for kind in ("kernel", "bias")
        ]
        return feed_forward(x, *(self.arrays[path] for path in paths))

    def attended(self, name, x, memory, mask=None):
        def heads(part, x):
            kernel = self.arrays[f"{name}/linear_{part}/kernel"]
            bias = self.arrays.get(f"{name}/linear_{part}/bias", 0)
            return (x @ kernel + bias).reshape(len(x), HEADS, -1).swapaxes(0, 1)

        query, key, value = heads("queries", x), heads("keys", memory), heads("values", memory)
        of_heads = scaled_dot_product_attention(query, key, value, mask)
        joined = of_heads.swapaxes(0, 1).reshape(len(x), -1)
        bias = self.arrays.get(f"{name}/linear_output/bias", 0)
        return joined @ self.arrays[f"{name}/linear_output/kernel"] + bias


def cut(written, side, text):
    """Text as ids of OpenNMT-tf."""
    model = str(written.folder / list(TEXTS)[side])
    pieces = written.pieces[side]
    theirs = sentencepiece.SentencePieceProcessor(model_file=model).encode(text, out_type=str)
    return [pieces.index(piece) if piece in pieces else len(pieces) for piece in theirs]


def test_scores_are_those_of_its_formulas(whole):
    module = imported.module_of(imported.opened(whole.folder))[1]
    text = "no red cats at home"
    source = cut(whole, 0, text)
    target = [*np.random.default_rng(1).integers(3, len(whole.pieces[1]) + 1, size=9), 2]
    expected = OpenNMT(whole).log_probabilities(source, target)
    names = module.vocabulary.target.pieces
    own = {2: EOS, len(whole.pieces[1]): UNK}
    ids = [own.get(number) or names.index(whole.pieces[1][number]) for number in target]
    with eagerly():
        inputs = module.source_ids(tf.constant([text])).to_tensor()
        scores = module._graphs.log_probabilities(inputs, tf.constant([ids]))
    np.testing.assert_allclose(scores[0], expected, atol=1e-4)
    # Controls: positions counted from 0, and a source with an end.
    from_zero = OpenNMT(whole)
    from_zero.first = 0
    assert np.abs(from_zero.log_probabilities(source, target) - expected).max() > 1e-3
    ended = OpenNMT(whole).log_probabilities([*source, 2], target)
    assert np.abs(ended - expected).max() > 1e-3


def test_text_is_cut_as_the_models_of_each_language_cut_it(whole):
    vocabulary = OpenNMTFolder(whole.folder).vocabulary()
    for number, side in enumerate(("source", "target")):
        ours = getattr(vocabulary, side)
        assert ours.pieces[4 : len(whole.pieces[number]) + 1] == whole.pieces[number][3:]
        for text in [*list(TEXTS.values())[number], "a  cat", ""]:
            [ids] = ours.tokenize(tf.constant([text])).to_list()
            theirs = cut(whole, number, text)
            assert ids == [*(UNK if n == len(whole.pieces[number]) else n + 1 for n in theirs), EOS]


def test_it_decodes_as_its_config_says(whole):
    options = imported.module_of(OpenNMTFolder(whole.folder))[1].options
    assert (options.beam_size, options.length_penalty, options.beam_form) == (2, 0.6, "staying")
    assert (options.max_length, options.min_length) == ("251", "1")


def test_a_run_and_its_averaged_checkpoints_can_be_opened(tmp_path):
    written = write(tmp_path)
    assert isinstance(imported.opened(tmp_path / "run"), OpenNMTFolder)
    average = tmp_path / "run" / "avg"
    average.mkdir()
    for number in (9, 10):
        changed = {name: array + number for name, array in written.arrays.items()}
        write_checkpoint(average, changed)
        for path in average.glob("ckpt-3.*"):
            path.rename(average / path.name.replace("-3", f"-{number}"))
    (average / "checkpoint").unlink()
    folder = imported.opened(average)
    bias = folder._weights["model/decoder/output_layer/bias"]
    np.testing.assert_allclose(bias, written.arrays[f"{OUTPUT}/bias"] + 10)
    # The copies of the vocabularies that lie beside a checkpoint have its unknown piece.
    for name, side in (("en.txt", "features"), ("de.txt", "labels")):
        lines = (tmp_path / name).read_text() + "<unk>\n"
        copy = f"model_examples_inputter_{side}_inputter_embedding.txt"
        (tmp_path / name).rename(tmp_path / "run" / copy)
        (tmp_path / "run" / copy).write_text(lines)
    assert OpenNMTFolder(tmp_path)._pieces == folder._pieces


def test_text_without_a_model_of_pieces_is_cut_at_spaces(tmp_path):
    written = write(tmp_path)
    data = {key: name for key, name in CONFIG["data"].items() if "tokenization" not in key}
    (tmp_path / "config.yml").write_text(yaml.safe_dump({"data": data}))
    for name in TEXTS:
        (tmp_path / name).unlink()
    words = ["r\uffed", "\uffedun", "cat", "caf\u00e9", *(f"w{n}" for n in range(99))]
    for name, side in zip(("en.txt", "de.txt"), written.pieces, strict=True):
        lines = [*BLANK, *words][: len(side)]
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    source = OpenNMTFolder(tmp_path).vocabulary().source
    [ids] = source.tokenize(tf.constant(["cat  r\uffed \uffedun cats w1"])).to_list()
    assert ids == [6, 4, 5, UNK, source.pieces.index("\u2581w1"), EOS]
    assert (
        source.detokenize(tf.ragged.constant([[6, 4, 7]])).numpy()[0].decode() == "cat r\uffed café"
    )


DESCRIPTIONS = {
    "model = lambda: models.get_model_from_catalog('TransformerBig')": {"num_heads": 16},
    "model = lambda: models.get_model_from_catalog('ScalingNmtEnDe')": {"source_end": True},
    "model = opennmt.models.TransformerBase": None,
    "model = lambda: catalog.TransformerTiny()": {"num_layers": 2, "num_units": 64},
    "class Own(onmt.models.Transformer):\n  def __init__(self):\n    super().__init__("
    "source_inputter=onmt.inputters.WordEmbedder(), num_heads=4)\nmodel = lambda: Own()": (
        {"num_heads": 4, "num_units": 512}
    ),
    "model = lambda: Transformer(None, None, 3, 8, ffn_activation=tf.nn.gelu)": (
        {"num_layers": 3, "num_units": 8, "ffn_activation": "tf.nn.gelu"}
    ),
    "model = lambda: Transformer(num_layers=2 * int(os.environ['N']))": None,
    "model = lambda: Transformer(num_experts=2)": None,
    "model = lambda: models.LuongAttention()": None,
    "a = Transformer(); b = Transformer()": None,
    "model = (": None,
    "Transformer(None, None, num_layers={[1]: 2})": None,
}


@pytest.mark.parametrize("text", DESCRIPTIONS)
def test_descriptions_are_read_and_never_run(tmp_path, text):
    path = tmp_path / "model_description.py"
    path.write_text(f"import missing\n{text}\n")
    expected = DESCRIPTIONS[text]
    if expected is None:
        with pytest.raises(ValueError, match=r"model_description\.py") as raised:
            read_description(path)
        assert "\n" not in str(raised.value)
    else:
        assert read_description(path).items() >= expected.items()


def config(**changes):
    """config.yml with changes in `data` or `params`."""
    sections = {name: {**CONFIG[name], **changes.get(name, {})} for name in ("data", "params")}
    return {"config.yml": yaml.safe_dump({**CONFIG, **sections}).encode()}


def description(end=b"", **changes):
    values = {"num_layers": (2, 1), "num_units": 16, "num_heads": 2, "ffn_inner_dim": 24, **changes}
    arguments = ", ".join(f"{name}={value}" for name, value in values.items())
    code = f"model = lambda: Transformer({arguments})".encode()
    return {"run/model_description.py": code + end}


CONTROLS = b"\nauto = {'source_sequence_controls': {'end': True}}"


def tokenizer(**settings):
    return config(data={"source_tokenization": settings})


BAD = {
    "other layers": (description(num_layers=2), r"`num_layers` of .*\(2, 1\), as in the checkp"),
    "another width": (description(num_units=8), "`num_units` of .* must be 16, as in the check"),
    "a width of bytes": (description(num_units=b"x"), r"`num_units` of .*b'x'"),
    "heads that do not divide": (description(num_heads=3), "`num_heads` of .* a divisor of 16"),
    "no number of heads": (description(num_heads="None"), "`num_heads` of .* a divisor of 16"),
    "relative positions": (description(maximum_relative_position=20), "`maximum_relative_pos"),
    "other positions": (
        description(position_encoder_class="onmt.layers.PositionEmbedder"),
        "`position_encoder_class` of .* SinusoidalPositionEncoder. Received: onmt.layers.Posit",
    ),
    "another activation": (description(ffn_activation="tf.nn.elu"), "`ffn_activation` of .*nn.rel"),
    "no description": ({"run/model_description.py": b"model = 3"}, "must create one Transformer"),
    "another cutter": (tokenizer(type="CharacterTokenizer"), "one of SpaceTokenizer, OpenNMTTok"),
    "aggressive cuts": (
        tokenizer(type="OpenNMTTokenizer", params={"mode": "aggressive", "bpe_model_path": "a"}),
        "`source_tokenization` of .*config.yml lacks sp_model_path",
    ),
    "another mode": (tokenizer(mode="space", sp_model_path="sp_en.model"), "`mode` of .*none"),
    "case marks": (
        tokenizer(mode="none", sp_model_path="a", case_markup=1),
        "not know: case_markup",
    ),
    "a list for a cutter": (tokenizer(type=["x"]), "`type` of .* one of Space.* Received: a list"),
    "a word": (tokenizer(type="OpenNMTTokenizer", params="mode"), "a mapping of names. .*: mode"),
    "a start": (
        config(data={"source_sequence_controls": {"start": True, "end": True}}),
        "`start` of `source_sequence_controls` of .*yml must be false, .*Received: true",
    ),
    "controls of its class": (description(CONTROLS), "`source_sequence_controls` .*set, .*: null"),
    "coverage": (config(params={"coverage_penalty": 0.2}), "`coverage_penalty` of `params` of"),
    "unknowns replaced": (config(params={"replace_unknown_target": True}), "`replace_unknown_tar"),
    "a list for a mapping": ({"config.yml": b"data: [1]"}, "`data` of .*a mapping"),
    "numbers for names": ({"config.yml": b"data: {1: 2}"}, "`data` of .*a mapping of names"),
    "no YAML": ({"config.yml": b"data: [a\n"}, "is no YAML"),
    "an empty model of pieces": ({"sp_en.model": b""}, "sp_en.model is not a SentencePiece model"),
    "no model of pieces": ({"sp_de.model": b"pieces"}, "sp_de.model is not a SentencePiece model"),
    "no blank": ({"en.txt": b"<s>\n</s>\na\n"}, "must begin with the lines <blank>, <s>, </s>"),
    "a piece twice": ({"en.txt": b"<blank>\n<s>\n</s>\na\na\n"}, "each piece once. Received: a"),
    "a piece less": ({"en.txt": b"<blank>\n<s>\n</s>\na\n"}, r"expected \(5, 16\)"),
    "not UTF-8": ({"de.txt": b"\xff"}, "must be UTF-8"),
    "an index of nothing": ({"run/ckpt-3.index": b"index"}, "is no checkpoint, or is damaged"),
    "no numbers": ({"run/ckpt-3.data-00000-of-00001": b"data"}, "is damaged"),
    "infinite": ({"weight": np.inf}, "layer_norm/gamma must have finite numbers of float32"),
    "float64": ({"weight": np.float64(1)}, "finite numbers of float32. Received: float64"),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return write(tmp_path_factory.mktemp("good"))


def spoiled(good, folder, fault):
    """A copy of the folder with a fault."""
    shutil.copytree(good.folder, folder, dirs_exist_ok=True)
    if "weight" in fault:
        name = "encoder/layer_norm/gamma"
        value = np.asarray(fault["weight"])
        dtype = value.dtype if np.isfinite(value) else np.float32
        write_checkpoint(folder / "run", {**good.arrays, name: np.full(WIDTH, value, dtype)})
    for name, content in fault.items():
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        elif content is None:
            (folder / name).unlink()
    return folder


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_imported_is_refused_in_one_line(good, tmp_path, name):
    fault, message = BAD[name]
    folder = spoiled(good, tmp_path, fault)
    with pytest.raises(ValueError, match=message) as raised:
        imported.module_of(OpenNMTFolder(folder))
    assert "\n" not in str(raised.value)
    assert str(folder) in str(raised.value)


MISSING = {
    "run/model_description.py": ({"run/model_description.py": None}, "has no "),
    "run/ckpt-3.index": ({"run/ckpt-3.index": None}, "has no "),
    "sp_en.model": ({"sp_en.model": None}, "has no "),
    "en.txt": ({"en.txt": None}, "has no en.txt or model_examples"),
    "a folder": (config(data={"source_vocabulary": "."}), r"has no \. or model_examples"),
    "an empty name": ({"run/checkpoint": b""}, "run/checkpoint names none: .*run has no such"),
}


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_file_is_named(good, tmp_path, name):
    fault, message = MISSING[name]
    with pytest.raises(FileNotFoundError, match=message):
        imported.module_of(OpenNMTFolder(spoiled(good, tmp_path, fault)))


def test_a_checkpoint_of_version_1_is_refused_by_name(good, tmp_path):
    spoiled(good, tmp_path, {})
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variable = tf.compat.v1.get_variable("transformer/encoder/w", [2])
        session.run(variable.initializer)
        tf.compat.v1.train.Saver([variable]).save(session, str(tmp_path / "run" / "ckpt-3"))
    with pytest.raises(ValueError, match=r"one of version 1\. Convert it by onmt-convert"):
        OpenNMTFolder(tmp_path)


def test_a_whole_folder_has_no_fault(good, tmp_path):
    folder = OpenNMTFolder(spoiled(good, tmp_path, {}))
    assert not folder.hyperparameters.source_end
    assert folder.model().hyperparameters.num_decoder_layers == DEPTHS["decoder"]
    assert folder.unused_parts() == ""
    # On the controls of a source, config.yml overrides the class.
    controls = config(data={"source_sequence_controls": {"end": True}})
    both = controls | description(CONTROLS)
    assert OpenNMTFolder(spoiled(good, tmp_path, both)).hyperparameters.source_end


def test_sources_of_some_models_of_the_catalog_end_with_eos(good, tmp_path, monkeypatch):
    monkeypatch.setitem(CATALOG, "Transformer", {"source_end": True})
    assert OpenNMTFolder(spoiled(good, tmp_path, {})).hyperparameters.source_end
