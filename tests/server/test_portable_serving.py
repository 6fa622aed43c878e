"""A folder of graphs of ONNX or LiteRT is served as its model's SavedModel would be, without
TensorFlow.
"""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from drawn_models import pieces, random_model
from without_tensorflow import BEGINNING

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
SERVER = f"""{BEGINNING}
from keras_transformer import flags, serve

flags.run(serve.main, serve.SECTIONS)
"""


@pytest.fixture(scope="module")
def live(pieces):
    """The functions that a SavedModel's signatures would have."""
    options = DecodingOptions(beam_size=3, max_length="+4")
    module = TranslationModule(random_model(block_size=3), pieces, options)
    return {"serving_default": module.translate, **module.functions(), "module": module}


PLATFORMS = {"onnx": "onnxruntime_onnx", "litert": "litert_tflite"}


@pytest.fixture(scope="module", params=["onnx", pytest.param("litert", marks=pytest.mark.slow)])
def form(request):
    # ONNX Runtime is imported as the product does, without its reports.
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


def asked(client, signature, **inputs):
    document = {"signature_name": signature, "inputs": inputs}
    answer = client.post("/v1/models/m:predict", json=document)
    assert answer.status_code == 200, answer.text
    return answer.json()["outputs"]


def expected(live, signature, **inputs):
    types = {one.name: one.dtype for one in live[signature].input_signature}
    given = {name: tf.constant(value, types[name]) for name, value in inputs.items()}
    return {name: one.numpy() for name, one in live[signature](**given).items()}


def texts(array):
    return np.vectorize(bytes.decode, otypes=[object])(array).tolist()


def test_translations_and_scores_are_those_of_the_live_model(served, live):
    found = asked(served, "serving_default", text=LINES)
    assert found == texts(expected(live, "serving_default", text=LINES)["translation"])
    assert len(set(found)) > 3
    in_blocks = asked(served, "blockwise", text=LINES)
    assert in_blocks == texts(expected(live, "blockwise", text=LINES)["translation"]) != found
    found = asked(served, "nbest", text=LINES)
    nbest = expected(live, "nbest", text=LINES)
    real = [number for number, line in enumerate(LINES) if line]
    assert np.array(found["translations"])[real].tolist() == texts(nbest["translations"][real])
    scores = np.array(found["scores"])[real]
    np.testing.assert_allclose(scores, nbest["scores"][real], rtol=1e-3, atol=1e-4)
    found = asked(served, "score", text=LINES, reference=REFERENCES)
    scores = expected(live, "score", text=LINES, reference=REFERENCES)
    assert found["tokens"] == scores["tokens"].tolist()
    np.testing.assert_allclose(found["log_probability"], scores["log_probability"], rtol=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beam_size": [1]},
        {"beam_size": [5], "num_hypotheses": [4], "length_penalty": [1.5]},
        {"length_penalty_form": ["length"], "length_penalty": [0.5], "num_hypotheses": [2]},
        {"max_length": [3]},
        # Beyond the bounds.
        {"beam_size": [-1], "num_hypotheses": [9]},
        {"length_penalty": [-3.0]},
        # Each row its own.
        {"beam_size": [1, 2, 3, 4], "num_hypotheses": [1, 2, 1, 3], "max_length": [0, 3, 5, 0]},
    ],
    ids=str,
)
def test_the_options_of_a_request_mean_what_they_mean_in_a_savedmodel(served, live, options):
    lines = [line for line in LINES if line]
    found = asked(served, "translate", text=lines, **options)
    whole = expected(live, "translate", text=lines, **options)
    assert found["translations"] == texts(whole["translations"])
    np.testing.assert_allclose(found["scores"], whole["scores"], rtol=1e-3, atol=1e-4)


def test_samples_are_of_their_line_and_seed(served):
    one, other, again = (
        asked(served, "sample", text=LINES, seed=[seed], temperature=[2.0]) for seed in (1, 2, 1)
    )
    assert one == again != other
    assert asked(served, "sample", text=LINES[3:4], seed=[1], temperature=[2.0]) == one[3:4]
    cold = asked(served, "sample", text=LINES, temperature=[1e-9])
    greedy = asked(served, "translate", text=LINES, beam_size=[1])["translations"]
    assert cold == [row[0] for row in greedy]


def test_it_describes_itself_as_a_savedmodel_does(served, live, form):
    definitions = served.get("/v1/models/m/metadata").json()["metadata"]["signature_def"]
    definitions = definitions["signature_def"]
    names = {"serving_default", "nbest", "translate", "sample", "score", "next_pieces", "blockwise"}
    assert set(definitions) == names
    for name, definition in definitions.items():
        function = live[name]
        inputs = {one.name: one for one in function.input_signature}
        assert definition["inputs"].keys() == inputs.keys()
        for one, spec in inputs.items():
            shown = definition["inputs"][one]
            assert shown["dtype"] == f"DT_{spec.dtype.name.upper()}".replace("FLOAT32", "FLOAT")
            assert [size["size"] for size in shown["tensor_shape"]["dim"]] == ["-1"]
        outputs = function.get_concrete_function().structured_outputs
        assert definition["outputs"].keys() == outputs.keys()
    about = served.get("/v2/models/m").json()
    assert about["platform"] == PLATFORMS[form]
    assert [one["name"] for one in about["outputs"]] == ["translation"]


NEXT = [
    {},
    {"prefix": "d c", "top_k": 3},
    {"prefix": "d", "temperature": 0.5, "top_p": 0.7},
    {"temperature": -1.0, "top_p": 0.0, "top_k": -1},
]


@pytest.mark.parametrize("options", NEXT)
def test_the_pieces_that_come_next_are_those_of_the_savedmodel(served, live, options):
    whole = {"prefix": "", "temperature": 1.0, "top_k": 0, "top_p": 1.0, **options}
    rows = {name: [value] * len(LINES) for name, value in whole.items()}
    bars = asked(served, "next_pieces", text=LINES, **rows)
    of_live = expected(live, "next_pieces", text=LINES, **rows)
    assert bars["pieces"] == texts(of_live["pieces"])
    for name in ("probabilities", "model_probabilities"):
        np.testing.assert_allclose(bars[name], of_live[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["serving_default", "nbest", "score", "next_pieces"])
def test_no_texts_get_no_answers_in_the_shapes_of_the_savedmodel(folder, live, name):
    model = ServedPortable(folder / "1")
    signature = model.signatures[name]
    given = dict.fromkeys(signature.required, np.empty(0, object)) | signature.defaults
    of_live = expected(live, name, **{one: array.tolist() for one, array in given.items()})
    came = model.run(name, given)
    found = {one: array.shape for one, array in came.items()}
    assert found == {one: array.shape for one, array in of_live.items()}


@pytest.mark.parametrize("name", ["align", "none"])
def test_what_it_has_not_is_refused_by_name(served, name):
    document = {"signature_name": name, "instances": ["a"]}
    answer = served.post("/v1/models/m:predict", json=document)
    assert answer.status_code == 400
    assert f'"{name}" not found' in answer.json()["error"]
    assert ("Serve the SavedModel" in answer.json()["error"]) == (name != "none")


def test_a_run_that_nobody_waits_for_stops_before_its_next_step(folder):
    model = ServedPortable(folder / "1")
    text = {"text": np.array([b"a b"], object)}
    cancellation = Cancellation()
    cancellation.cancel()
    for name in ("serving_default", "nbest"):
        with pytest.raises(RequestError, match="Nobody waits"):
            model.run(name, text, cancellation)
    # The control.
    model.run("serving_default", text, Cancellation())


def test_a_newer_version_takes_the_place_of_the_old_one(folder, form, exported, start, tmp_path):
    shutil.copytree(folder, tmp_path / "m")
    with start(tmp_path / "m") as client:
        before = asked(client, "serving_default", text=["a b"])
        # A SavedModel: TensorFlow comes in with it.
        shutil.copytree(exported / "m" / "1", tmp_path / "m" / "2")
        client.service.versions.poll()
        assert asked(client, "serving_default", text=["a b"]) == ["A B"] != before
        assert ModelPath.of(tmp_path / "m").version == tmp_path / "m" / "2"
        assert client.get("/v2/models/m").json()["platform"] == "tensorflow_savedmodel"
        (tmp_path / "m" / "3").mkdir()
        (tmp_path / "m" / "3" / DECODERS[form]).write_bytes(b"half")
        client.service.versions.poll()
        assert asked(client, "serving_default", text=["a b"]) == ["A B"]
        states = client.get("/v1/models/m").json()["model_version_status"]
        assert states[0]["status"]["error_code"] == "UNKNOWN"


def test_of_a_version_that_lost_a_file_the_file_is_told(folder, tmp_path):
    copied = shutil.copytree(folder, tmp_path / "m")
    versions = Versions(copied)
    for number, lost in enumerate(["model.json", "vocabulary.model"], 2):
        path = shutil.copytree(copied / "1", copied / str(number)) / lost
        path.unlink()
        versions.poll()
        told = f"{path}: No such file or directory. Copy it again from where it was made."
        assert versions.states[number] == State("END", told)
        assert versions.available() == [1]
    versions.close()


def test_a_language_model_goes_on(pieces, form, start, tmp_path):
    sizes = {"num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2}
    model = LanguageModel(vocabulary_size=300, norm="pre", positions="rotary", **sizes)
    module = GenerationModule(model, pieces, GenerationModule.options_of({"max_length": "+5"}))
    description = {"task": "language_modelling"}
    portable_export.export(module, tmp_path / "m", description, ["a b", "c"], form=form)
    with start(tmp_path / "m") as client:
        found = asked(client, "serving_default", text=["a b c", "d"])
        assert [text[:1] for text in found] == ["a", "d"]
        scores = asked(client, "score", text=["a b c", "d"])
        whole = expected(module.functions(), "score", text=["a b c", "d"])
        np.testing.assert_allclose(scores["log_probability"], whole["log_probability"], rtol=1e-3)
        assert scores["tokens"] == whole["tokens"].tolist()
        given = {"text": ["a b c", "d"], "prefix": ["d", ""], "top_k": [0], "top_p": [1.0]}
        bars = asked(client, "next_pieces", **given, temperature=[1.0])
        whole = expected(module.functions(), "next_pieces", **given, temperature=[1.0])
        assert bars["pieces"] == texts(whole["pieces"])
        nbest = asked(client, "nbest", text=["a", "b"])
        assert np.shape(nbest["generated"]) == np.shape(nbest["scores"]) == (2, 1)
        short = asked(client, "sample", text=["a b c"], max_length=[1], seed=[5])
        assert short[0].startswith("a b c")


def test_a_process_without_tensorflow_and_keras_serves_it(folder, live):
    import httpx

    command = [sys.executable, "-c", SERVER, f"--model_base_path={folder}", "--rest_api_port=0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = {"event": ""}
        while line["event"] != "serving":
            line = json.loads(process.stderr.readline())
        with httpx.Client(base_url=line["url"], timeout=60) as client:
            translations = texts(expected(live, "serving_default", text=LINES)["translation"])
            assert asked(client, "serving_default", text=LINES) == translations
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
