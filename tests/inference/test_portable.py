"""A folder of graphs of ONNX or LiteRT gives what the live model gives, in a process without
TensorFlow too.
"""

import collections
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types

import numpy as np
import pytest
from drawn_models import assert_alike, learned, random_language_model, random_model
from shell import without_tensorflow

from keras_transformer.decoding import DecodingOptions
from keras_transformer.decoding.numpy_blocks import NumpyBlocks
from keras_transformer.evaluation import metrics
from keras_transformer.inference import onnx_conversion, portable_export
from keras_transformer.inference.generator import Generator
from keras_transformer.inference.held_out_text import HeldOut
from keras_transformer.inference.translator import Translator
from keras_transformer.tasks.language_modelling.module import GenerationModule
from keras_transformer.tasks.task import Task
from keras_transformer.tasks.translation.module import TranslationModule
from keras_transformer.visualization.attention_pictures import Maps
from pipelines.glossary import Glossary
from pipelines.vocabularies.protected_spans import KINDS, ProtectedSpans

# By format: the module an export imports besides TensorFlow, its folder's runtime, and the name.
NEEDS = {
    "onnx": ("tf2onnx.convert", "onnxruntime", "ONNX Runtime"),
    "litert": ("ai_edge_litert.interpreter", "ai_edge_litert.interpreter", "LiteRT"),
}
# A line without a visible character.
BLANK = " \u3000\u00ad\u200b\ufeff\x1c"
LINES = ["a b c d", "", "d d", "e a b c d f g", "b", BLANK, "h h h h a"]
ASCII = [line for line in LINES if line.isascii()]
REFERENCES = ["d c b a", "a", "d", "g f d c b a e", "c c c", "b", "h"]


@pytest.fixture(scope="module", params=list(NEEDS))
def form(request):
    # The check of a folder imports the runtime as the product does, without its reports.
    pytest.importorskip(NEEDS[request.param][0].partition(".")[0])
    return request.param


@functools.cache
def module_of(pieces, block_size=1):
    options = DecodingOptions(beam_size=3, max_length="+4")
    return TranslationModule(random_model(block_size=block_size), pieces, options)


@pytest.fixture(scope="module")
def module(pieces):
    return module_of(pieces)


@pytest.fixture(scope="module")
def live(module):
    return Translator(module)


@pytest.fixture(scope="module")
def folder(module, form, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "model"
    corpus = {"source_language": "a", "target_language": "b"}
    description = {"task": "translation", "corpus": corpus}
    return portable_export.export(module, path, description, LINES[:3], form=form)


@functools.cache
def with_options(pieces, **options):
    """A live translator to compare both formats with, once per options: tracing takes seconds."""
    return Translator(TranslationModule(random_model(), pieces, DecodingOptions(**options)))


def test_translations_are_those_of_the_live_model(live, folder):
    translator = Translator.load(folder)
    expected = live.translate(LINES)
    assert translator.translate(LINES) == expected
    assert [translator.translate([line])[0] for line in LINES] == expected
    assert translator.translate([]) == []
    # The newest of the versions in a folder.
    assert Translator.load(folder.parent).translate(LINES) == expected
    assert len(set(expected)) > 3
    assert [line for line, text in zip(LINES, expected, strict=True) if not text] == ["", BLANK]


def test_scores_and_details_are_those_of_the_live_model(live, folder):
    translator = Translator.load(folder)
    prefixes = ["", "a", "b c", "", "d", "", "a a"]
    scores = [model.score(LINES, REFERENCES) for model in (translator, live)]
    np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-4)
    assert_alike(*(model.translate_in_detail(LINES, prefixes) for model in (translator, live)))
    # Of its own hypotheses it scores more pieces than of a reference.
    long = {"min_length": 1100, "max_length": 1100, "repetition_penalty": 0.5, "beam_size": 1}
    [[hypothesis]] = Translator.load(folder, **long).translate_in_detail(["a"])
    assert len(hypothesis.log_probabilities) == 1100


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1, "max_length": 7},
        {"beam_size": 5, "num_hypotheses": 5, "max_length": "2x", "length_penalty": 1.0},
        {"no_repeat_ngram_size": 1, "repetition_penalty": 1.3, "max_length": 7},
    ],
    ids=str,
)
def test_options_replace_the_exported_ones(pieces, folder, options):
    live = with_options(pieces, **{"beam_size": 3} | options).translate_in_detail(LINES)
    assert_alike(Translator.load(folder, **options).translate_in_detail(LINES), live)


@pytest.fixture(scope="module")
def forbidden(live, tmp_path_factory):
    """A file of words that come unless they are forbidden."""
    # Bytes that make no character are not read back as they were.
    words = {word for line in live.translate(LINES) for word in line.split()}
    path = tmp_path_factory.mktemp("forbidden") / "words"
    path.write_text("\n".join(sorted(word for word in words if "\ufffd" not in word)))
    return path


def test_forbidden_words_never_come(pieces, live, folder, forbidden):
    options = {"forbidden": str(forbidden), "beam_size": 3, "max_length": "+4"}
    translations = Translator.load(folder, **options).translate(LINES)
    assert translations == with_options(pieces, **options).translate(LINES) != live.translate(LINES)
    words = forbidden.read_text().splitlines()
    assert words
    assert not set(words) & {word for line in translations for word in line.split()}


def test_penalties_sentences_and_batches(live, folder):
    translator = Translator.load(folder)
    line = ["a b. Cd a e. g h", "d"]
    translations = translator.translate(line, split_sentences=True)
    assert translations == live.translate(line, split_sentences=True)
    swept = translator.translate_with_penalties(LINES, 2, [0.0, 1.0])
    assert swept == live.translate_with_penalties(LINES, 2, [0.0, 1.0])
    assert translator.translate(LINES, batch_tokens=4, batches_at_once=2) == live.translate(LINES)


@pytest.mark.parametrize(
    ("precision", "share", "block_size"), [("float16", 0.65, 1), ("int8", 0.5, 3)]
)
def test_rounded_weights_take_fewer_bytes_and_the_card_says_what_changed(
    pieces, folder, form, tmp_path, precision, share, block_size, monkeypatch
):
    module = module_of(pieces, block_size)
    live = Translator(module)
    # They lie beside the export, where the next one removes those of a killed process.
    paths = []
    make = tempfile.mkdtemp
    monkeypatch.setattr(tempfile, "mkdtemp", lambda *how: paths.append(make(*how)) or paths[-1])
    arguments = (tmp_path / "model", {}, LINES[:3], precision)
    sources = [LINES[0], *LINES[3:]]
    # All but the first are the model's own translations.
    references = ["something else", *live.translate(sources[1:])]
    measure = functools.partial(metrics.score, tokenize="char")
    held_out = HeldOut(sources, references, measure)
    rounded = portable_export.export(module, *arguments, form=form, held_out=held_out)
    assert all(pathlib.Path(path).is_relative_to(tmp_path) for path in paths)
    card = json.loads((rounded / "model.json").read_text())
    assert card["precision"] == precision
    if form == "onnx":
        assert weights_in(rounded) < share * weights_in(folder)
    golden = [json.loads(line) for line in (rounded / "golden.jsonl").read_text().splitlines()]
    alike, of = map(int, card["golden_as_in_float32"].split(" of "))
    assert 0 < alike <= of == len(golden)
    text = (rounded / "README.md").read_text()
    assert f"{alike} of {of} golden examples come out as in float32" in text
    translator = Translator.load(rounded)
    scores = [measure(model.translate(sources), references) for model in (live, translator)]
    of_both = {"float32": scores[0]["bleu"], precision: scores[1]["bleu"]}
    signature = scores[0]["bleu_signature"]
    assert card["bleu"] == {**of_both, "sentences": len(sources), "signature": signature}
    assert 0 < of_both["float32"] < 100
    remark = f"BLEU {of_both[precision]}, in float32 {of_both['float32']}, of {len(sources)} sent"
    assert remark in text
    expected = [example["translation"] for example in golden]
    assert [translator.translate([example["text"]])[0] for example in golden] == expected
    pairs = (["a b c d", "d d", "b"], ["d c b a", "d", "c c c"])
    scores = [[score for score, _ in model.score(*pairs)] for model in (live, translator)]
    np.testing.assert_allclose(*scores, rtol=0.1)
    if block_size > 1:
        [blockwise], [greedy] = (
            Translator.load(rounded, **search).translate_in_detail(LINES[:1])[0]
            for search in ({"blockwise": True}, {"beam_size": 1})
        )
        steps = (blockwise.log_probabilities[0], greedy.log_probabilities[0])
        np.testing.assert_allclose(*steps, atol=0.1)


def onnx_weights(path):
    return pytest.importorskip("onnx").load(path).graph.initializer


def weights_in(folder):
    return sum(len(tensor.raw_data) for tensor in onnx_weights(folder / "decoder.onnx"))


def operations(path):
    """The nodes of a graph, and how many there are of each operation."""
    nodes = pytest.importorskip("onnx").load(path).graph.node
    return nodes, collections.Counter(node.op_type for node in nodes)


@pytest.mark.parametrize("form", ["onnx"], indirect=True, scope="module")
def test_each_norm_is_one_operation_and_so_are_rows_of_a_table(folder, of_blocks):
    # Heads that propose add two norms, and a table of their own where they read a token.
    graphs = ((folder, "encoder", 2, 1), (folder, "decoder", 3, 1))
    for_blocks = ((of_blocks, "encoder", 4, 1), (of_blocks, "blocks", 8, 2))
    for path, graph, norms, tables in (*graphs, *for_blocks):
        nodes, counts = operations(path / f"{graph}.onnx")
        assert counts["LayerNormalization"] == norms
        read = {"ids", *(name for node in nodes if node.op_type != "Where" for name in node.output)}
        gathers = [node for node in nodes if "embedding" in node.name and "Gather" in node.name]
        rows = [node.input[1] for node in gathers]
        assert len(rows) == tables
        assert {*rows} <= read
        # Layers share their angles; no node reads its input through an Identity.
        assert counts["Sin"] == 2
        passed = {node.output[0] for node in nodes if node.op_type == "Identity"}
        assert not passed & {name for node in nodes for name in node.input}
    # Proposals are verified, so all their products with weights may be those of integers.
    nodes, counts = operations(of_blocks / "blocks.onnx")
    assert counts["MatMulInteger"] == 6
    weights = {tensor.name for tensor in onnx_weights(of_blocks / "blocks.onnx")}
    products = [node for node in nodes if node.op_type in ("Gemm", "MatMul")]
    left = [node.name for node in products if weights & {*node.input}]
    assert not [name for name in left if name.startswith("proposals/")]


def test_a_language_model_continues_and_scores_as_the_live_one(pieces, form, tmp_path):
    model = random_language_model()
    drawing, searching = (
        GenerationModule(model, pieces, GenerationModule.options_of({**more, "max_length": "+5"}))
        for more in ({}, {"beam_size": 2})
    )
    live = Generator.of(searching)
    arguments = (drawing, tmp_path / "model", {"task": "language_modelling"}, ["a b", "c"])
    folder = portable_export.export(*arguments, form=form)
    generator = Generator.load(folder, beam_size=2)
    prompts = ["a b c", "", "d", "h h h"]
    assert generator.generate(prompts) == live.generate(prompts)
    # A search ignores the seed, which may be that of a training.
    assert Generator.load(folder, beam_size=2, seed=3).generate(prompts) == live.generate(prompts)
    perplexities = generator.perplexities(prompts[:1])
    assert perplexities == pytest.approx(live.perplexities(prompts[:1]), rel=1e-3)
    drawn_texts = Generator.load(folder).generate(prompts)
    assert all(text.startswith(prompt) for text, prompt in zip(drawn_texts, prompts, strict=True))
    assert Generator.load(folder, seed=3).generate(prompts) != drawn_texts
    with pytest.raises(ValueError, match="must be a model of"):
        Translator.load(folder)


def loud():
    """The environment of a user, in which TensorFlow writes messages when it is imported."""
    return {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}


def test_a_process_without_tensorflow_translates_in_a_locale_of_ascii(live, folder, tmp_path):
    named = shutil.copytree(folder, tmp_path / "\u00fc")
    ascii_alone = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    completed = subprocess.run(
        without_tensorflow("translate", f"--model={named}"),
        input="\n".join(ASCII),
        capture_output=True,
        text=True,
        check=False,
        cwd=pathlib.Path(__file__).parents[2],
        env=loud() | ascii_alone,
    )
    expected = "".join(f"{text}\n" for text in live.translate(ASCII))
    assert (completed.stdout, completed.stderr) == (expected, "")


SPANS = [
    *("a {x} b <b>c {y}</b> d", "see https://a.b/c or me@a.org", "", "no span"),
    *(" {x} ", "%s d 12345"),
    *("<p>a <b>b</b> <i>c</i></p>", "⟦keep me⟧ b\n{x}", "e {a} {a} {a}", "h \udcff {x}"),
    " ".join(f"{{x{number}}}" for number in range(40)),
    *("A B CD {x} E F. G", "a b cd e f"),
]


@pytest.fixture(scope="module")
def protected():
    """A function from decoding options to a module with protected spans, of another variant than
    the paper's.
    """
    spans = ProtectedSpans(tuple(KINDS), truecase=True, cased_words=("B", "Cd"))
    pieces = learned(340, protected=spans)
    model = random_model(vocabulary_size=pieces.size, positions="relative", norm="pre")

    @functools.cache
    def protecting_by(**options):
        decoding = {"beam_size": 3, "max_length": "+6"} | options
        return TranslationModule(model, pieces, DecodingOptions(**decoding))

    return protecting_by


@pytest.fixture(scope="module")
def protecting(protected, form, tmp_path_factory):
    """The exported folder of a module with protected spans."""
    path = tmp_path_factory.mktemp("protecting") / "model"
    module = protected()
    description = {"task": "translation", "protected": module.vocabulary.protected.as_dict()}
    return portable_export.export(module, path, description, SPANS[:2], form=form)


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"beam_size": 4, "num_hypotheses": 4},
        {"beam_form": "shrinking", "no_repeat_ngram_size": 3},
    ],
    ids=str,
)
def test_protected_spans_come_back_as_from_the_live_model(protected, protecting, options):
    live = Translator(protected(**options))
    exported = Translator.load(protecting, **options)
    nbest = live.translate_in_detail(SPANS, [""] * len(SPANS))
    expected = [hypotheses[0].text for hypotheses in nbest]
    assert exported.translate(SPANS) == expected
    assert [exported.translate([line])[0] for line in SPANS] == expected
    prefixes = ["{y} a", "me@a.org", "", "a", "", "b %s", "<b>", "", "{a} {a}", "", "{x2}", "C", ""]
    assert_alike(*(model.translate_in_detail(SPANS, prefixes) for model in (exported, live)))
    targets = ["{y} <b>a</b> {x}", *SPANS[1:]]
    # Scores do not depend on the options of a search.
    scores = [model.score(SPANS, targets) for model in (exported, Translator(protected()))]
    np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-4)
    for line, translation in zip(SPANS, expected, strict=True):
        assert all(translation.count(span) == line.count(span) for span in ("{x}", "<b>", "%s"))


def test_samples_keep_spans_and_terms_of_a_glossary(protecting):
    marked = Glossary({"d": "Delta"}, ProtectedSpans.load(protecting)).applied("{x} d")
    for seed in range(5):
        [text] = Translator.load(protecting, samples=1, seed=seed).translate([marked])
        assert (text.count("{x}"), text.count("Delta")) == (1, 1)


def test_the_folder_says_what_it_is(folder, form):
    card = json.loads((folder / "model.json").read_text())
    assert card["format"] == form
    graphs = [path for path in folder.iterdir() if path.suffix in (".onnx", ".tflite")]
    assert card["bytes"] == sum(path.stat().st_size for path in graphs)
    assert sorted(path.stem for path in graphs) == ["decoder", "encoder"]
    remark = (folder / "README.md").read_text(encoding="utf-8")
    assert all(f"`{path.name}`" in remark for path in graphs)
    assert card["decoding"]["beam_size"] == 3
    _, package, runtime = NEEDS[form]
    assert package.partition(".")[0].replace("_", "-") in card["versions"]
    assert runtime in (folder / "README.md").read_text()
    golden = (folder / "golden.jsonl").read_text().splitlines()
    assert {*json.loads(golden[0])} == {"text", "translation"}
    # There is no unfinished folder beside it.
    assert [path.name for path in folder.parent.iterdir()] == ["1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coverage_penalty": 0.2}, "searched without it: coverage_penalty=0.2"),
        ({"blockwise": True}, "`blockwise` needs the heads of a model that was trained with"),
        ({"source_language": "xx"}, r"^source_language=xx: .* has no labels of languages\. Leave"),
        ({"samples": 1, "beam_size": 2}, "exclude each other"),
        ({"num_hypotheses": 9}, "num_hypotheses=9"),
    ],
)
def test_options_that_graphs_cannot_follow_are_refused(folder, options, message):
    with pytest.raises(ValueError, match=message):
        Translator.load(folder, **options)


# The runtime that prints of the two.
@pytest.mark.parametrize("form", ["litert"], indirect=True, scope="module")
def test_evaluate_shows_no_messages_of_tensorflow(folder, tmp_path):
    files = [tmp_path / "source", tmp_path / "reference"]
    for file in files:
        file.write_text("a b\n")
    command = (
        *(sys.executable, "-m", "keras_transformer.evaluate", f"--model={folder}"),
        *(f"--source_file={files[0]}", f"--reference_file={files[1]}", "--metrics=bleu"),
    )
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=loud())
    assert ran.stdout.startswith("1 sentence")
    assert not ran.stderr


def test_a_missing_damaged_or_mistaken_file_is_refused_by_its_name(protecting, tmp_path):
    graphs = [path.name for path in protecting.iterdir() if path.suffix in (".onnx", ".tflite")]
    for lost in (*sorted(graphs), "protected_spans.json"):
        copied = shutil.copytree(protecting, tmp_path / lost)
        assert Translator.load(copied).translate(["a {x}"])[0].count("{x}") == 1
        if lost.startswith("decoder"):
            os.truncate(copied / lost, 1_000)
        else:
            (copied / lost).unlink()
        with pytest.raises((ValueError, FileNotFoundError), match=rf"{lost} is (missing|damaged)"):
            Translator.load(copied)
    ending = pathlib.Path(graphs[0]).suffix
    encoder, decoder = f"encoder{ending}", f"decoder{ending}"
    for source, replaced, lacks in ((encoder, decoder, "logs"), (decoder, encoder, "source_0")):
        mixed = shutil.copytree(protecting, tmp_path / f"{source}_twice")
        shutil.copy(mixed / source, mixed / replaced)
        message = rf"{replaced} is another graph: it has no output {lacks}"
        with pytest.raises(ValueError, match=message):
            Translator.load(mixed)


def test_attention_precisions_and_ensembles_are_refused(folder):
    translator = Translator.load(folder)
    of_line = Maps(line="a", translation="b")
    with pytest.raises(ValueError, match="has no attention"):
        translator.attention("a", "b")
    with pytest.raises(ValueError, match="exported with its own precision"):
        Translator.load(folder, "bfloat16")
    for read in (lambda: Translator.load([folder, folder]), lambda: of_line.attended(folder, {})):
        with pytest.raises(ValueError, match="has only graphs"):
            read()


def test_an_export_that_cannot_be_is_refused_by_name(pieces, module, folder, form, tmp_path):
    with pytest.raises(ValueError, match="--precision=bfloat16"):
        portable_export.export(module, tmp_path / "model", {}, (), "bfloat16", form=form)
    with pytest.raises(FileExistsError, match="never changed"):
        portable_export.export(module, folder.parent, {}, version=1, form=form)
    covering = TranslationModule(random_model(), pieces, DecodingOptions(coverage_penalty=0.1))
    with pytest.raises(ValueError, match=r"coverage_penalty=0\.1"):
        portable_export.export(covering, tmp_path / "model", {})
    module_of_trees = types.SimpleNamespace(output="tree")
    with pytest.raises(ValueError, match=f"--format={form} is for .* whose output is a tree"):
        portable_export.export(module_of_trees, tmp_path / "model", {}, form=form)


@pytest.fixture(scope="module")
def reading_blocks():
    # In steps of one token its state stops growing.
    sizes = {"block_size": 3, "num_decoder_layers": 2}
    return random_model(positions="rotary", attention="local:2", **sizes)


@pytest.fixture(scope="module")
def of_blocks(reading_blocks, pieces, form, tmp_path_factory):
    """The exported folder of a model that decodes by blocks, its golden examples too."""
    path = tmp_path_factory.mktemp("blocks") / "model"
    module = TranslationModule(
        reading_blocks, pieces, DecodingOptions(blockwise=True, max_length="+4")
    )
    return portable_export.export(module, path, {}, LINES[:3], form=form)


@pytest.fixture(scope="module")
def greedy_details(reading_blocks, pieces):
    """A function from prefixes and rules to what the live model's greedy search gives."""

    @functools.cache
    def details_of(*prefixes, **rules):
        options = DecodingOptions(beam_size=1, max_length="+4", **rules)
        live = Translator(TranslationModule(reading_blocks, pieces, options))
        return live.translate_in_detail(LINES, [*prefixes])

    return details_of


@pytest.mark.parametrize(
    "rules", [{}, {"min_length": 6, "no_repeat_ngram_size": 1, "repetition_penalty": 1.3}], ids=str
)
def test_blocks_give_what_greedy_search_gives(greedy_details, of_blocks, rules):
    prefixes = ["", "a", "b c", "", "d e f a b", "", "a a"]
    expected = greedy_details(*prefixes, **rules)
    for search in ({"blockwise": True}, {"beam_size": 1}):
        exported = Translator.load(of_blocks, **search, **rules)
        assert_alike(exported.translate_in_detail(LINES, prefixes), expected)
    # The exported search is the default; a beam size replaces it.
    by_default, by_beam = (
        Translator.load(of_blocks, **search).translate(LINES) for search in ({}, {"beam_size": 3})
    )
    assert by_default != by_beam
    swept = Translator.load(of_blocks).translate_with_penalties(LINES, 3, [0.0, 0.6])
    assert [texts[1] for texts in swept] == by_beam


def test_operations_that_litert_has_not_are_refused_by_name(pieces, tmp_path, capfd):
    pytest.importorskip("ai_edge_litert")
    module = TranslationModule(random_model(activation="gelu"), pieces, DecodingOptions())
    with pytest.raises(ValueError, match=r"no Erf, which this model's encoder .* --format=onnx\."):
        portable_export.export(module, tmp_path / "model", {}, form="litert")
    assert "tf.Erf" not in capfd.readouterr().err


def test_a_task_without_graphs_refuses_their_formats_before_training():
    task = types.SimpleNamespace(is_portable=False, name="masking")
    for formats in (["saved_model", "onnx"], ["litert"]):
        message = rf"{','.join(formats)} is for .* --task=masking\. Leave"
        with pytest.raises(ValueError, match=message):
            Task.__init__(task, {"export_formats": formats})
    Task.__init__(task, {"export_formats": ["saved_model"]})


def test_a_format_without_its_package_is_refused_before_training(monkeypatch):
    task = types.SimpleNamespace(is_portable=True, name="translation")
    monkeypatch.setattr(onnx_conversion, "MODULES", ("no_package_of_this_name",))
    values = {"export_formats": ["saved_model", "onnx"], "release": True}
    with pytest.raises(ValueError, match=r"onnx needs no_package.*: pip install '.*\[onnx\]'\."):
        Task.__init__(task, values)
    Task.__init__(task, {**values, "release": False})
    Task.__init__(task, {**values, "export_formats": ["saved_model"]})
    # Another backend exports nothing.
    monkeypatch.setattr("keras.backend.backend", lambda: "jax")
    Task.__init__(task, values)


def use_graphs_of(exported, monkeypatch):
    """Let exports copy the graphs of an earlier one of the same model, to convert none anew."""
    graphs = [path for path in exported.iterdir() if path.suffix in (".onnx", ".tflite")]

    def copied(module, form, precision, folder):
        assert [shutil.copy(path, folder) for path in graphs]

    monkeypatch.setattr(portable_export, "_convert", copied)


def test_an_export_that_gives_something_else_is_not_written(
    module, folder, form, tmp_path, monkeypatch
):
    use_graphs_of(folder, monkeypatch)
    golden = (["a b"], ["no such words"])
    monkeypatch.setattr(portable_export, "_golden", lambda *_: golden)
    with pytest.raises(ValueError, match="nothing was exported: golden examples come out other"):
        portable_export.export(module, tmp_path / "model", {}, form=form)
    assert list(tmp_path.iterdir()) == []


def test_an_export_of_wrong_blocks_is_refused(
    reading_blocks, of_blocks, pieces, form, tmp_path, monkeypatch
):
    use_graphs_of(of_blocks, monkeypatch)
    module = TranslationModule(reading_blocks, pieces, DecodingOptions(beam_size=1, max_length=3))
    monkeypatch.setattr(NumpyBlocks, "_of_sentence", lambda *_: [])
    with pytest.raises(ValueError, match=r"nothing was exported: .* The first, in blocks: "):
        portable_export.export(module, tmp_path / "model", {}, form=form)
    assert list(tmp_path.iterdir()) == []


def test_blocks_are_exported_with_another_search(
    reading_blocks, of_blocks, pieces, form, tmp_path, monkeypatch
):
    use_graphs_of(of_blocks, monkeypatch)
    drawing = DecodingOptions(samples=3, num_hypotheses=2, max_length=3)
    module = TranslationModule(reading_blocks, pieces, drawing)
    exported = portable_export.export(module, tmp_path / "model", {}, ["a b"], form=form)
    counts = [
        len(Translator.load(exported, **options).translate_in_detail(["a b"])[0])
        for options in ({}, {"beam_size": 1}, {"blockwise": True}, {"samples": 1})
    ]
    assert counts == [2, 1, 1, 1]


def test_without_the_packages_the_extra_is_named(module, folder, form, tmp_path, monkeypatch):
    converter, runtime, _ = NEEDS[form]
    monkeypatch.setitem(sys.modules, converter, None)
    with pytest.raises(ValueError, match=rf"pip install 'keras-transformer-nmt\[{form}\]'"):
        portable_export.export(module, tmp_path / "model", {}, form=form)
    monkeypatch.setitem(sys.modules, runtime, None)
    package = runtime.partition(".")[0].replace("_", "-")
    with pytest.raises(ValueError, match=f"pip install {package}"):
        Translator.load(folder)
