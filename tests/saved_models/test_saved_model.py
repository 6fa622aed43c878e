"""An export's folder: its files hold and describe the whole model, and no version that is broken or
incomplete ever appears there.
"""

import json
import pathlib
import re
import shutil
import subprocess

import keras
import numpy as np
import pytest
import tensorflow as tf
from drawn_models import Some, random_model
from exports import checks_here, report_here
from shared import unpack
from small_model import eagerly
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2
from tensorflow_serving.apis import prediction_log_pb2

import keras_transformer
from keras_transformer.decoding import DecodingOptions
from keras_transformer.inference.translator import Translator
from keras_transformer.models import Transformer, translation_policy
from keras_transformer.saved_models import assets, card, self_check, served_module
from keras_transformer.saved_models.served_module import ServedModule
from keras_transformer.saved_models.versions import newest_version
from keras_transformer.saved_models.write import export
from keras_transformer.tasks.translation.module import TranslationModule
from pipelines.vocabularies import vocabulary

EXAMPLES = ["a b c d", "d d", "e f g h i j"]
LINES = ["a b c", "d"]
REFERENCES = ["c b", "d d"]


@pytest.fixture(scope="module")
def model():
    """Not the paper's norm and activation: an export has to keep both."""
    return random_model(norm="pre", activation="gelu")


@pytest.fixture(scope="module")
def module(model, pieces):
    return TranslationModule(model, pieces, DecodingOptions(beam_size=2, max_length="+3"))


@pytest.fixture(scope="module")
def checked(module, model, tmp_path_factory):
    """An exported version, and the reports of its checks."""
    scores = {"bleu": 12.3, "chrf": 45.6, "weights": "best epoch"}
    scores["bleu_signature"] = "nrefs:1|case:mixed"
    corpus = {"name": "reverse", "source_language": "words", "target_language": "reversed"}
    sizes = model.hyperparameters.as_dict()
    description = {"corpus": corpus, "scores": scores, "hyperparameters": sizes}
    report = self_check.report
    reports = []

    def recorded_report(folder):
        reports.append(report(folder))
        return reports[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(self_check, "report", recorded_report)
        folder = tmp_path_factory.mktemp("exported") / "m"
        path = export(module, folder, description, EXAMPLES)
    return path, reports


@pytest.fixture(scope="module")
def exported(checked, shared):
    return shared.add(checked[0])


@pytest.fixture(scope="module")
def by_tensorflow(exported):
    """The version as TensorFlow reloads it."""
    return tf.saved_model.load(str(exported))


@pytest.fixture(scope="module")
def live(module):
    return Translator(module)


@pytest.fixture(scope="module")
def reloaded(exported):
    return Translator.load(exported)


@pytest.fixture
def quick(monkeypatch):
    """Exports that save no graph and check nothing, for tests that do not look at the graph."""
    monkeypatch.setattr(self_check, "check", lambda folder: None)
    monkeypatch.setattr(tf.saved_model, "save", lambda module, path, signatures, options: None)


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def array_of(table):
    """The array that a module laid out when it was loaded, or None before that."""
    handle = table.resource_handle
    if not tf.raw_ops.VarIsInitializedOp(resource=handle):
        return None
    return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32).numpy()


def translated(loaded):
    [translations] = loaded.signatures["serving_default"](tf.constant(LINES)).values()
    return [line.decode() for line in translations.numpy()]


def test_an_export_lays_out_its_table_when_it_is_loaded(module, model, exported, live):
    [live_table] = module.tables
    assert array_of(live_table) is None
    first, second = (tf.saved_model.load(str(exported)) for _ in range(2))
    expected = np.transpose(model.projection.table)
    for loaded in (first, second):
        np.testing.assert_array_equal(array_of(*loaded.tables), expected)
    # Each loaded model has a table of its own.
    resource = second.tables[0].resource_handle
    tf.raw_ops.AssignVariableOp(resource=resource, value=np.zeros_like(expected))
    np.testing.assert_array_equal(array_of(*first.tables), expected)
    assert translated(first) == live.translate(LINES) != translated(second)


def test_a_server_has_the_table_laid_out(model, exported):
    """TF Serving loads an export as a session does."""
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.saved_model.load(session, ["serve"], str(exported))
        # Weights have the names of their paths.
        handle = graph.get_tensor_by_name("VarHandleOp:0")
        table = session.run(tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32))
    np.testing.assert_array_equal(table, np.transpose(model.projection.table))


def test_a_live_model_translates_with_its_new_weights_after_an_export(pieces, tmp_path, quick):
    model = random_model(norm="pre", activation="gelu")
    module = TranslationModule(model, pieces, DecodingOptions(beam_size=2, max_length="+3"))
    before = Translator(module).translate(LINES)
    export(module, tmp_path / "m", {})
    table = model.projection.table
    table.assign(np.roll(table, 3, axis=0))
    after = Translator(module).translate(LINES)
    anew = TranslationModule(model, pieces, DecodingOptions(beam_size=2, max_length="+3"))
    with eagerly():
        assert after == Translator(anew).translate(LINES) != before


def test_versions_count_up_or_are_named_and_none_is_written_twice(module, tmp_path, quick):
    folder = tmp_path / "m"
    assert newest_version(folder) is None
    versions = [export(module, folder, {}, version=version).name for version in (None, 7, None)]
    assert versions == ["1", "7", "8"]
    (folder / "00000009").mkdir()
    for version, name in ((7, "7"), (9, "00000009")):
        message = rf"m/{name} exists: a served version is never changed\. Leave --version out"
        with pytest.raises(FileExistsError, match=message):
            export(module, folder, {}, version=version)
    assert sorted(path.name for path in folder.iterdir()) == ["00000009", "1", "7", "8"]
    assert export(module, folder, {}).name == "10"


@pytest.mark.parametrize("part", ["graph", "vocabulary"])
def test_a_version_that_cannot_be_written_is_removed(module, tmp_path, monkeypatch, quick, part):
    def full_disk(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr(
        *((tf.saved_model, "save") if part == "graph" else (module.vocabulary, "save")), full_disk
    )
    with pytest.raises(OSError, match="No space"):
        export(module, tmp_path / "m", {})
    assert list(tmp_path.iterdir()) == []


def test_a_process_of_its_own_checks_once_and_imports_nothing_of_ours(checked):
    _, [report] = checked
    assert (report["different"], report["not_served"]) == ([], [])
    assert not {"keras_transformer", "pipelines", "sentencepiece"} & set(report["modules"])
    names = ("", "Tokenize", "Detokenize", "IdToString", "StringToId")
    ops = {op for op in report["ops"] if op.startswith("Sentencepiece")}
    assert ops == {f"Sentencepiece{name}Op" for name in names}


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        (
            {"different": [{"inputs": "b'a'", "way": "alone", "expected": "b'x'", "came": "b'y'"}]},
            "1 golden examples differ .* alone: b'a' to b'y', expected b'x'",
        ),
        ({"not_served": ["EagerPyFunc"]}, "stock TF Serving does not link EagerPyFunc"),
    ],
)
def test_a_version_that_fails_its_check_never_appears(
    module, tmp_path, monkeypatch, faults, message
):
    monkeypatch.setattr(tf.saved_model, "save", lambda module, path, signatures, options: None)
    report = {"different": [], "not_served": [], **faults}
    monkeypatch.setattr(self_check, "report", lambda folder: report)
    with pytest.raises(ValueError, match=f"nothing was exported: {message}"):
        export(module, tmp_path / "m", {}, EXAMPLES)
    assert list(tmp_path.iterdir()) == []


def test_a_version_that_cannot_be_loaded_is_refused_in_a_line(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError):
        self_check.main(tmp_path)
    program = tmp_path / "program.py"
    program.write_text("import sys\nopen(sys.argv[1] + '/saved_model.pb')\n", encoding="utf-8")
    monkeypatch.setattr(self_check, "PROGRAM", program)
    message = r"does not run in a new process \(FileNotFoundError"
    with pytest.raises(ValueError, match=message):
        self_check.report(tmp_path)
    # Packages may lie where a user installed them, or where PYTHONPATH says.
    program.write_text("import json, sys\nprint(json.dumps(sys.path))\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", "/packages")
    path = self_check.report(tmp_path)
    assert "/packages" in path
    assert str(tmp_path) not in path


def test_calls_of_python_are_found_in_functions_too():
    function = tf.function(lambda text: tf.py_function(lambda text: text, [text], tf.string))
    outer = tf.function(lambda text: function(text)).get_concrete_function(
        tf.TensorSpec([None], tf.string)
    )
    graph = meta_graph_pb2.MetaGraphDef(graph_def=outer.graph.as_graph_def())
    assert self_check.PYTHON & self_check.ops_of(graph) == {"EagerPyFunc"}


def test_golden_sentences_are_those_of_the_test_set_and_edge_cases(exported, module, live):
    golden = lines(exported / "assets.extra" / "golden.jsonl")
    first = golden[: len(EXAMPLES)]
    assert [line["text"] for line in first] == EXAMPLES
    assert {"b64": "/yBubyBVVEYtOCD+"} in [line["text"] for line in golden]
    assert [line["translation"] for line in first] == live.translate(EXAMPLES)
    texts = served_module.golden_texts(module.vocabulary.source.pieces, [])
    assert len(set(texts)) == len(texts) == served_module.SENTENCES + len(served_module.EDGES)


def test_signatures_and_defaults_of_their_options_are_as_documented(exported, by_tensorflow):
    graph = saved_model_pb2.SavedModel.FromString((exported / "saved_model.pb").read_bytes())
    definitions = graph.meta_graphs[0].signature_def
    defaults = {
        name: {key: tf.make_ndarray(value).tolist() for key, value in definition.defaults.items()}
        for name, definition in definitions.items()
    }
    options = {"beam_size": [2], "length_penalty": [np.float32(0.6)], "length_penalty_form": [b""]}
    options |= {"max_length": [0], "num_hypotheses": [1]}
    assert {name: value for name, value in defaults.items() if value} == {
        "translate": options,
        "sample": {"temperature": [1], "seed": [1]},
        "next_pieces": {"prefix": [b""], "temperature": [1], "top_k": [0], "top_p": [1]},
    }
    names = ("serving_default", "translate", "nbest", "score", "sample", "next_pieces", "align")
    assert set(by_tensorflow.signatures) == {*names}
    # Functions for gradients would double the graph.
    assert not graph.meta_graphs[0].graph_def.library.registered_gradients


def warmups(version):
    """The requests that TF Serving would warm up with, each with its arrays."""
    path = str(version / "assets.extra" / "tf_serving_warmup_requests")
    for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
        request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
        arrays = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
        yield request, {name: tf.constant(array) for name, array in arrays.items()}


def test_every_request_to_warm_up_with_is_answered(exported, by_tensorflow):
    signatures = by_tensorflow.signatures
    names = []
    for request, inputs in warmups(exported):
        names.append(request.model_spec.signature_name)
        # The others have defaults, which TF Serving fills in, and Python does not.
        if names[-1] not in ("translate", "sample", "next_pieces"):
            signatures[names[-1]](**inputs)
        assert request.model_spec.name == "m"
    assert set(names) == set(signatures)
    assert names.count("serving_default") == 7


def test_batching_parameters_name_every_size_up_to_the_largest(exported):
    text = (exported / "assets.extra" / "batching_parameters.txt").read_text()
    sizes = [
        int(line.split()[1]) for line in text.splitlines() if line.startswith("allowed_batch_sizes")
    ]
    assert sizes == sorted(sizes)
    assert f"max_batch_size {{ value: {sizes[-1]} }}" in text  # TF Serving refuses any other


def test_a_package_of_another_name_has_no_version(module, tmp_path):
    card.write(tmp_path, module, {}, {}, "", packages=("tensorflow-of-another-name",))
    versions = json.loads((tmp_path / "model.json").read_text())["versions"]
    assert versions["tensorflow-of-another-name"] is None


def test_the_card_describes_the_model(exported):
    fields = json.loads((exported / "model.json").read_text())
    text = (exported / "README.md").read_text()
    assert fields["scores"]["bleu"] == 12.3
    assert fields["precision"] == "float32"
    assert fields["decoding"]["beam_size"] == 2
    assert fields["versions"]["tensorflow"] == tf.__version__
    assert fields["versions"]["keras_transformer"] == keras_transformer.__version__
    assert "| languages | words to reversed |" in text
    assert r"| signature of BLEU | nrefs:1\|case:mixed |" in text
    assert "serving_default, translate" in text


def test_the_saved_model_holds_each_weight_once(exported, model):
    stored = sum(file.stat().st_size for file in (exported / "variables").iterdir())
    weights = sum(variable.value.numpy().nbytes for variable in model.weights)
    assert weights <= stored < 1.2 * weights + 20_000
    assert Translator.load(exported.parent).translate([]) == []


@pytest.mark.slow
@pytest.mark.parametrize("only", [["serving_default"], []])
def test_bfloat16_weighs_half_and_translates_as_it_does_here(model, pieces, tmp_path, only):
    # An untrained model has near ties, which a graph may round otherwise; this seed gives none.
    keras.utils.set_random_seed(1)
    module = TranslationModule(
        Transformer(model.hyperparameters, dtype=translation_policy("bfloat16")),
        pieces,
        DecodingOptions(beam_size=1, max_length="+3"),
    )
    with checks_here():
        exported = Some(module, *only) if only else module
        path = export(exported, tmp_path / "half", {}, EXAMPLES)
    weights = sum(int(np.prod(weight.shape)) for weight in module.weights)
    assert (path / "variables" / "variables.data-00000-of-00001").stat().st_size < 3 * weights
    assert json.loads((path / "model.json").read_text())["precision"] == "bfloat16"


def test_a_version_holds_what_another_model_is_trained_from(exported, by_tensorflow, model, pieces):
    loaded = vocabulary.Vocabulary.load(exported / "assets.extra" / "vocabulary.model")
    assert loaded.fingerprint == pieces.fingerprint
    stored = {
        f"weights/{variable.name.removesuffix(':0')}": variable.numpy()
        for variable in by_tensorflow.weights
    }
    assert list(stored) == [f"weights/{variable.path}" for variable in model.weights]
    for variable, array in zip(model.weights, stored.values(), strict=True):
        assert variable.value.numpy().tobytes() == array.tobytes()


def test_a_reloaded_module_does_all_that_the_live_one_does(live, reloaded):
    assert reloaded.translate(LINES, REFERENCES) == live.translate(LINES, REFERENCES)
    assert reloaded.translate_in_detail(LINES) == live.translate_in_detail(LINES)
    assert reloaded.align(LINES, REFERENCES) == live.align(LINES, REFERENCES)
    assert reloaded.score(LINES, REFERENCES) == live.score(LINES, REFERENCES)
    ours, theirs = (model.attention(LINES[0], REFERENCES[0]) for model in (live, reloaded))
    for part in ("encoder", "decoder", "cross"):
        np.testing.assert_allclose(theirs[part], ours[part], rtol=1e-6, atol=1e-6)
    described = reloaded.description["hyperparameters"]
    assert (described["norm"], described["activation"]) == ("pre", "gelu")


class Doubling(ServedModule):
    """Floats and a count in, floats and a count out."""

    summary = "It multiplies."

    def __init__(self, factor=2.0):
        super().__init__()
        self.factor = tf.Variable(factor)
        row = tf.TensorSpec([None, None], tf.float32, name="row")
        times = tf.TensorSpec([None], tf.int32, name="times")
        self.scale = tf.function(self._scale, input_signature=[row, times])
        # No golden input has this name: the first one of its dtype is taken.
        matrix = tf.TensorSpec([None, None], tf.float32, name="matrix")
        self.total = tf.function(
            lambda matrix: {"total": tf.reduce_sum(matrix, 1)}, input_signature=[matrix]
        )

    def _scale(self, row, times):
        return {
            "scaled": self.factor * row * tf.cast(times[:, None], tf.float32),
            "length": tf.fill(tf.shape(times), tf.shape(row)[1]),
        }

    def functions(self):
        return {"serving_default": self.scale, "total": self.total}

    def golden_inputs(self, examples):
        rows = [np.array(example, np.float32) for example in examples or [[1.0], [2.0, 3.0]]]
        return [{"row": row, "times": np.array(3, np.int32)} for row in rows]

    def facts(self):
        return {"factor": 2}

    def rows(self, card):
        return {"factor": card["factor"]}


@pytest.fixture(scope="module")
def doubling(tmp_path_factory):
    """A version of a module that has nothing to do with text."""
    folder = tmp_path_factory.mktemp("doubling") / "d"
    with checks_here():
        return export(Doubling(), folder, {"task": "doubling"}, [[1.5, 2], [4, 5, 6]])


def test_arrays_in_arrays_out_are_exported_checked_and_described_too(doubling):
    assert lines(doubling / "assets.extra" / "golden.jsonl") == [
        {"row": [1.5, 2.0], "times": 3, "scaled": [9.0, 12.0], "length": 2},
        {"row": [4.0, 5.0, 6.0], "times": 3, "scaled": [24.0, 30.0, 36.0], "length": 3},
    ]
    fields = json.loads((doubling / "model.json").read_text())
    assert (fields["factor"], fields["parameters"], fields["task"]) == (2, 1, "doubling")
    assert fields["signatures"] == ["serving_default", "total"]
    text = (doubling / "README.md").read_text()
    assert text.startswith("# A model of the task doubling\n\nIt multiplies.\n")
    assert "| factor | 2 |" in text


def test_every_request_to_warm_up_with_fits_its_signature(doubling):
    signatures = tf.saved_model.load(str(doubling)).signatures
    shapes = {name: [] for name in signatures}
    for request, inputs in warmups(doubling):
        signature = request.model_spec.signature_name
        signatures[signature](**inputs)
        shapes[signature].append({name: tuple(tensor.shape) for name, tensor in inputs.items()})
    expected = [{"row": (size, 2), "times": (size,)} for size in assets.BATCH_SIZES]
    assert shapes["serving_default"] == expected
    assert shapes["total"] == [{"matrix": (1, 2)}]


@pytest.mark.parametrize(
    ("line", "ways"),
    [
        ({"scaled": [9.0, 12.1]}, ["in a batch", "alone"]),
        ({"length": 3}, ["in a batch", "alone"]),
        ({"scaled": [9.0]}, ["in a batch", "alone"]),
        ({"scaled": [9.0, 12.00001]}, []),
    ],
)
def test_the_check_finds_an_array_that_differs(doubling, tmp_path, line, ways):
    altered = shutil.copytree(doubling, tmp_path / "altered")
    path = altered / "assets.extra" / "golden.jsonl"
    first, second = lines(path)
    path.write_text(f"{json.dumps(first | line)}\n{json.dumps(second)}\n", encoding="utf-8")
    differences = report_here(altered)["different"]
    assert [difference["way"] for difference in differences] == ways
    assert all("[1.5, 2.0]" in difference["inputs"] for difference in differences)


def test_an_output_with_the_name_of_an_input_is_refused():
    row = tf.TensorSpec([None, None], tf.float32, name="row")
    times = tf.TensorSpec([None], tf.int32, name="times")
    echo = tf.function(lambda row, times: {"row": row}, input_signature=[row, times])
    golden = [{"row": np.ones(2), "times": np.array(1)}]
    with pytest.raises(ValueError, match=r"row is an input and an output of serving_default"):
        assets.golden_examples({"serving_default": echo}, golden)


@pytest.mark.slow
def test_the_check_finds_what_differs_alone_and_in_a_batch_in_a_saved_model_of_0_5(tmp_path):
    """Its golden sentences are read, and those that nobody altered still come out."""
    fixture = pathlib.Path(__file__).parents[1] / "fixtures" / "release_0_5" / "saved_model.tar.gz"
    unpack(fixture, tmp_path)
    [graph] = tmp_path.rglob("saved_model.pb")
    path = graph.parent / "assets.extra" / "golden.jsonl"
    golden_lines = lines(path)
    altered = golden_lines[::2]
    for line in altered:
        line["translation"] = "other"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in golden_lines), encoding="utf-8")
    report = report_here(graph.parent)
    texts = [repr(self_check.from_json(line["text"])) for line in altered]
    expected = [(text, way, "b'other'") for way in ("in a batch", "alone") for text in texts]
    different = report["different"]
    assert [(each["inputs"], each["way"], each["expected"]) for each in different] == expected
    assert report["not_served"] == []


def test_the_commit_is_that_of_a_checkout_that_has_the_program(tmp_path, monkeypatch):
    def git(*arguments):
        who = ("-c", "user.name=n", "-c", "user.email=e@x.org")
        subprocess.run(["git", "-C", tmp_path, *who, *arguments], check=True, capture_output=True)

    program = tmp_path / "card.py"
    program.touch()
    monkeypatch.setattr(card, "__file__", str(program))
    git("init")
    git("commit", "--allow-empty", "-m", "another project's")
    assert card._commit() is None
    git("add", "card.py")
    assert card._commit().endswith("+")
    git("commit", "-m", "ours")
    assert re.fullmatch("[0-9a-f]{40}", card._commit())
