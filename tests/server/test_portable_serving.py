"""A folder of graphs of ONNX or LiteRT is served as its model's SavedModel would be, without
TensorFlow.
"""

import json
import shutil
import subprocess

import numpy as np
import pytest
import tensorflow as tf
from drawn_models import pieces, random_model
from shell import without_tensorflow

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from keras_transformer.decoding import DecodingOptions
from keras_transformer.inference import portable_export
from keras_transformer.models import LanguageModel
from keras_transformer.runs.model_path import ModelPath
from keras_transformer.saved_models.versions import DECODERS
from keras_transformer.server.batcher import Cancellation
from keras_transformer.server.options import RequestError
from keras_transformer.server.portable_model import ServedPortable
from keras_transformer.server.served_versions import State, Versions
from keras_transformer.tasks.language_modelling.module import GenerationModule
from keras_transformer.tasks.translation.module import TranslationModule

__all__ = ["pieces"]
LINES = ["a b c d", "d d", "", "e a b c d f g", "b"]
REFERENCES = ["d c b a", "d", "a", "g f d c b a e", "c c c"]


@pytest.fixture(scope="module")
def live(pieces):
    """The functions that a SavedModel's signatures would have."""
    options = DecodingOptions(beam_size=3, max_length="+4")
    module = TranslationModule(random_model(block_size=3), pieces, options)
    return {"serving_default": module.translate, **module.functions(), "module": module}


PLATFORMS = {"onnx": "onnxruntime_onnx", "litert": "litert_tflite"}


@pytest.fixture(scope="module", params=["onnx", pytest.param("litert", marks=pytest.mark.slow)])
def form(request):
    # ONNX Runtime is left to the program, which imports it without its reports.
    pytest.importorskip({"onnx": "tf2onnx", "litert": "ai_edge_litert"}[request.param])
    return request.param


@pytest.fixture(scope="module")
def folder(live, form, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "m"
    languages = {"source_language": "a", "target_language": "b"}
    description = {"task": "translation", "corpus": languages}
    portable_export.export(live["module"], path, description, LINES[:2], form=form)
    return path


@pytest.fixture(scope="module")
def served(folder, start):
    with start(folder) as client:
        yield client


def predict(client, signature, **inputs):
    document = {"signature_name": signature, "inputs": inputs}
    answer = client.post("/v1/models/m:predict", json=document)
    assert answer.status_code == 200, answer.text
    return answer.json()["outputs"]


def expected(live, signature, **inputs):
    types = {spec.name: spec.dtype for spec in live[signature].input_signature}
    tensors = {name: tf.constant(value, types[name]) for name, value in inputs.items()}
    return {name: output.numpy() for name, output in live[signature](**tensors).items()}


def texts(array):
    return np.vectorize(bytes.decode, otypes=[object])(array).tolist()


def test_translations_and_scores_are_those_of_the_live_model(served, live):
    best = predict(served, "serving_default", text=LINES)
    assert best == texts(expected(live, "serving_default", text=LINES)["translation"])
    assert len(set(best)) > 3
    in_blocks = predict(served, "blockwise", text=LINES)
    assert in_blocks == texts(expected(live, "blockwise", text=LINES)["translation"]) != best
    nbest = predict(served, "nbest", text=LINES)
    of_live = expected(live, "nbest", text=LINES)
    full = [number for number, line in enumerate(LINES) if line]
    assert np.array(nbest["translations"])[full].tolist() == texts(of_live["translations"][full])
    scores = np.array(nbest["scores"])[full]
    np.testing.assert_allclose(scores, of_live["scores"][full], rtol=1e-3, atol=1e-4)
    scored = predict(served, "score", text=LINES, reference=REFERENCES)
    of_live = expected(live, "score", text=LINES, reference=REFERENCES)
    assert scored["tokens"] == of_live["tokens"].tolist()
    np.testing.assert_allclose(scored["log_probability"], of_live["log_probability"], rtol=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beam_size": [1]},
        {"beam_size": [5], "num_hypotheses": [4], "length_penalty": [1.5]},
        {"length_penalty_form": ["length"], "length_penalty": [0.5], "num_hypotheses": [2]},
        {"max_length": [3]},
        # Below the exported min_length.
        {"max_length": [1]},
        # Options beyond their bounds.
        {"beam_size": [-1], "num_hypotheses": [9]},
        {"length_penalty": [-3.0]},
        # Options of each row.
        {"beam_size": [1, 2, 3, 4], "num_hypotheses": [1, 2, 1, 3], "max_length": [0, 3, 5, 0]},
    ],
    ids=str,
)
def test_options_of_a_request_mean_what_they_mean_in_a_savedmodel(served, live, options):
    lines = [line for line in LINES if line]
    nbest = predict(served, "translate", text=lines, **options)
    of_live = expected(live, "translate", text=lines, **options)
    assert nbest["translations"] == texts(of_live["translations"])
    np.testing.assert_allclose(nbest["scores"], of_live["scores"], rtol=1e-3, atol=1e-4)


def test_samples_depend_on_their_line_and_seed(served):
    first, second, again = (
        predict(served, "sample", text=LINES, seed=[seed], temperature=[2.0]) for seed in (1, 2, 1)
    )
    assert first == again != second
    assert predict(served, "sample", text=LINES[3:4], seed=[1], temperature=[2.0]) == first[3:4]
    cold = predict(served, "sample", text=LINES, temperature=[1e-9])
    greedy = predict(served, "translate", text=LINES, beam_size=[1])["translations"]
    assert cold == [row[0] for row in greedy]


def test_an_export_that_samples_gives_all_its_samples_by_nbest(folder, tmp_path):
    version = shutil.copytree(folder / "1", tmp_path / "1")
    card = json.loads((version / "model.json").read_text())
    card["decoding"] = {"samples": 3, "max_length": "+4"}
    (version / "model.json").write_text(json.dumps(card))
    model = ServedPortable(version)
    lines = {"text": np.array([line.encode() for line in LINES if line], object)}
    nbest = model.run("nbest", lines)
    assert nbest["translations"].shape == (len(LINES) - 1, 3)
    best = model.run("serving_default", lines)["translation"]
    assert nbest["translations"][:, 0].tolist() == best.tolist()
    # A control: a beam gives likelier ones.
    options = model.signatures["translate"].defaults | {"beam_size": np.array([3], np.int32)}
    assert (model.run("translate", lines | options)["scores"][:, 0] > nbest["scores"][:, 0]).all()


def test_it_describes_itself_as_a_savedmodel_does(served, live, form):
    definitions = served.get("/v1/models/m/metadata").json()["metadata"]["signature_def"]
    definitions = definitions["signature_def"]
    names = {"serving_default", "nbest", "translate", "sample", "score", "next_pieces", "blockwise"}
    assert set(definitions) == names
    for name, definition in definitions.items():
        function = live[name]
        specs = {spec.name: spec for spec in function.input_signature}
        assert definition["inputs"].keys() == specs.keys()
        for key, tensor in definition["inputs"].items():
            dtype = f"DT_{specs[key].dtype.name.upper()}".replace("FLOAT32", "FLOAT")
            assert tensor["dtype"] == dtype
            assert [size["size"] for size in tensor["tensor_shape"]["dim"]] == ["-1"]
        outputs = function.get_concrete_function().structured_outputs
        assert definition["outputs"].keys() == outputs.keys()
    about = served.get("/v2/models/m").json()
    assert about["platform"] == PLATFORMS[form]
    assert [output["name"] for output in about["outputs"]] == ["translation"]
    text = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a"]}
    document = {"inputs": [text], "parameters": {"signature_name": "nbest"}}
    outputs = served.post("/v2/models/m/infer", json=document).json()["outputs"]
    assert [output["name"] for output in outputs] == [*definitions["nbest"]["outputs"]]


NEXT = [
    {},
    {"prefix": "d c", "top_k": 3},
    {"prefix": "d\u3000c d", "top_k": 3},
    {"prefix": "d", "temperature": 0.5, "top_p": 0.7},
    {"temperature": -1.0, "top_p": 0.0, "top_k": -1},
]


@pytest.mark.parametrize("options", NEXT)
def test_the_pieces_that_come_next_are_those_of_the_savedmodel(served, live, options):
    options = {"prefix": "", "temperature": 1.0, "top_k": 0, "top_p": 1.0, **options}
    rows = {name: [value] * len(LINES) for name, value in options.items()}
    bars = predict(served, "next_pieces", text=LINES, **rows)
    of_live = expected(live, "next_pieces", text=LINES, **rows)
    assert bars["pieces"] == texts(of_live["pieces"])
    for name in ("probabilities", "model_probabilities"):
        np.testing.assert_allclose(bars[name], of_live[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["serving_default", "nbest", "score", "next_pieces"])
def test_a_batch_without_texts_gives_the_shapes_of_the_savedmodel(folder, live, name):
    model = ServedPortable(folder / "1")
    signature = model.signatures[name]
    inputs = dict.fromkeys(signature.required, np.empty(0, object)) | signature.defaults
    of_live = expected(live, name, **{key: array.tolist() for key, array in inputs.items()})
    outputs = model.run(name, inputs)
    shapes = {key: array.shape for key, array in outputs.items()}
    assert shapes == {key: array.shape for key, array in of_live.items()}


# A translator's SavedModel has the first, a language model's the second.
@pytest.mark.parametrize("name", ["align", "attend", "none"])
def test_a_signature_that_it_lacks_is_refused_by_name(served, name):
    document = {"signature_name": name, "instances": ["a"]}
    answer = served.post("/v1/models/m:predict", json=document)
    assert answer.status_code == 400
    assert f'"{name}" not found' in answer.json()["error"]
    assert ("Serve the SavedModel" in answer.json()["error"]) == (name == "align")


def test_a_run_that_nobody_waits_for_stops_before_its_next_step(folder):
    model = ServedPortable(folder / "1")
    text = {"text": np.array([b"a b"], object)}
    cancellation = Cancellation()
    cancellation.cancel()
    for name in ("serving_default", "nbest"):
        with pytest.raises(RequestError, match="Nobody waits"):
            model.run(name, text, cancellation)
    # A control.
    model.run("serving_default", text, Cancellation())


def test_a_newer_version_takes_the_place_of_the_old_one(folder, form, exported, start, tmp_path):
    shutil.copytree(folder, tmp_path / "m")
    with start(tmp_path / "m") as client:
        before = predict(client, "serving_default", text=["a b"])
        # The newer version is a SavedModel, which loads TensorFlow.
        shutil.copytree(exported / "m" / "1", tmp_path / "m" / "2")
        client.service.versions.poll()
        assert predict(client, "serving_default", text=["a b"]) == ["A B"] != before
        assert ModelPath.of(tmp_path / "m").version == tmp_path / "m" / "2"
        assert client.get("/v2/models/m").json()["platform"] == "tensorflow_savedmodel"
        (tmp_path / "m" / "3").mkdir()
        (tmp_path / "m" / "3" / DECODERS[form]).write_bytes(b"half")
        client.service.versions.poll()
        assert predict(client, "serving_default", text=["a b"]) == ["A B"]
        states = client.get("/v1/models/m").json()["model_version_status"]
        assert states[0]["status"]["error_code"] == "UNKNOWN"


def test_a_version_that_lost_a_file_says_which(folder, tmp_path):
    model = shutil.copytree(folder, tmp_path / "m")
    versions = Versions(model)
    for number, name in enumerate(["model.json", "vocabulary.model"], 2):
        path = shutil.copytree(model / "1", model / str(number)) / name
        path.unlink()
        versions.poll()
        error = f"{path}: No such file or directory. Copy it again from where it was made."
        assert versions.states[number] == State("END", error)
        assert versions.available() == [1]
    versions.close()


def test_a_language_model_continues_texts(pieces, form, start, tmp_path):
    sizes = {"num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2}
    model = LanguageModel(vocabulary_size=300, norm="pre", positions="rotary", **sizes)
    lengths = {"max_length": "+5", "min_length": "+3"}
    module = GenerationModule(model, pieces, GenerationModule.options_of(lengths))
    description = {"task": "language_modelling"}
    portable_export.export(module, tmp_path / "m", description, ["a b", "c"], form=form)
    with start(tmp_path / "m") as client:
        continued = predict(client, "serving_default", text=["a b c", "d"])
        assert [text[:1] for text in continued] == ["a", "d"]
        scores = predict(client, "score", text=["a b c", "d"])
        of_live = expected(module.functions(), "score", text=["a b c", "d"])
        np.testing.assert_allclose(scores["log_probability"], of_live["log_probability"], rtol=1e-3)
        assert scores["tokens"] == of_live["tokens"].tolist()
        inputs = {"text": ["a b c", "d"], "prefix": ["d", ""], "top_k": [0], "top_p": [1.0]}
        bars = predict(client, "next_pieces", **inputs, temperature=[1.0])
        of_live = expected(module.functions(), "next_pieces", **inputs, temperature=[1.0])
        assert bars["pieces"] == texts(of_live["pieces"])
        nbest = predict(client, "nbest", text=["a", "b"])
        assert np.shape(nbest["generated"]) == np.shape(nbest["scores"]) == (2, 1)
        document = {"signature_name": "attend", "instances": ["a"]}
        answer = client.post("/v1/models/m:predict", json=document)
        assert "Serve the SavedModel" in answer.json()["error"]
        # Below the exported min_length.
        samples = predict(client, "sample", text=["a b c"], max_length=[1], seed=[5])
        assert samples[0].startswith("a b c")


def test_a_process_without_tensorflow_and_keras_serves_it(folder, live):
    import httpx

    command = without_tensorflow("serve", f"--model_base_path={folder}", "--rest_api_port=0")
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = {"event": ""}
        while line["event"] != "serving":
            line = json.loads(process.stderr.readline())
        with httpx.Client(base_url=line["url"], timeout=60) as client:
            translations = texts(expected(live, "serving_default", text=LINES)["translation"])
            assert predict(client, "serving_default", text=LINES) == translations
            tensor = {"name": "text", "datatype": "BYTES", "shape": [5], "data": LINES}
            answer = client.post("/v2/models/m/infer", json={"inputs": [tensor]})
            assert answer.json()["outputs"][0]["data"] == translations
            for path in ("/", "/health", "/metrics", "/openapi.json", "/v1/models/m/metadata"):
                assert client.get(path).status_code == 200
            glossary = {"instances": ["a"], "glossary": {"a": "b"}}
            assert client.post("/v1/models/m:predict", json=glossary).status_code == 400
    finally:
        process.terminate()
        process.communicate()
    assert process.returncode == 0
