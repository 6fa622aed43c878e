"""The Dockerfile and the manifest of docs/serving.md, read line by line, and the paths that Vertex
AI names, at which the server is asked.
"""

import configparser
import json
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from keras_transformer.flags import parse
from keras_transformer.serve import SECTIONS
from keras_transformer.server.options import ServeOptions, Vertex

ROOT = pathlib.Path(__file__).parents[2]
SERVE = ["python", "-m", "keras_transformer.serve"]


def of_the_page(file):
    """The block of docs/serving.md that is such a file."""
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    [block] = re.findall(rf"^```text {file}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return block


def settings():
    found = configparser.ConfigParser()
    found.read(ROOT / "setup.cfg")
    return found


def served_by(arguments):
    """The options of `serve` with such arguments."""
    from absl import flags as absl_flags

    values = absl_flags.FlagValues()
    parse(values, arguments, SECTIONS)
    return ServeOptions(
        **{name: values[name].value for name in values if hasattr(ServeOptions, name)}
    )


def faults(dockerfile):
    """What is wrong with each line of a Dockerfile, in words."""
    lines = re.sub(r"\\\n\s*", " ", dockerfile).splitlines()
    instructions = [line.partition(" ")[::2] for line in lines if line.strip()]
    ends = [name for name, _ in instructions if name in ("FROM", "ENTRYPOINT")]
    if ends != ["FROM", "ENTRYPOINT"]:
        yield "has not one FROM first and one ENTRYPOINT"
    copied = set()
    user = "root"
    exposed = None
    for name, rest in instructions:
        if name == "FROM":
            version = re.fullmatch(r"python:(3\.\d+)-slim", rest)
            if (
                not version
                or f"Python :: {version[1]}" not in settings()["metadata"]["classifiers"]
            ):
                yield f"{rest}: no version of Python that is tested"
        elif name == "COPY":
            source, target = rest.split()
            if source != "." and not source.startswith("saved_models/"):
                yield f"copies {source}, which no checkout has"
            copied.add(target)
        elif name == "RUN":
            for command in rest.split("&&"):
                words = shlex.split(command)
                if words[:2] == ["pip", "install"]:
                    folder, extra = re.fullmatch(r"(.*)\[(\w+)\]", words[-1]).groups()
                    if folder not in copied:
                        yield f"installs {folder}, which was not copied"
                    if extra not in settings()["options.extras_require"]:
                        yield f"has the extra {extra}, which there is none"
                elif words[0] != "useradd":
                    yield f"runs {words[0]}, which was not looked at"
        elif name == "USER":
            user = rest
        elif name == "EXPOSE":
            exposed = int(rest)
        elif name == "ENTRYPOINT":
            command = json.loads(rest)
            if command[:3] != SERVE:
                yield "does not run serve"
                continue
            options = served_by(command[3:])
            if options.model_base_path not in copied:
                yield f"serves {options.model_base_path}, which was not copied"
            if options.host != "0.0.0.0":
                yield "listens to itself alone"
            if options.rest_api_port != exposed:
                yield f"listens at {options.rest_api_port}, exposes {exposed}"
        else:
            yield f"{name} is no instruction that was looked at"
    if user == "root":
        yield "runs as root"


def test_each_line_of_the_dockerfile_is_right():
    assert list(faults(of_the_page("Dockerfile"))) == []


@pytest.mark.parametrize(
    ("line", "wrong", "words"),
    [
        ("FROM python:3.13-slim", "FROM python:2.7-slim", "no version of Python"),
        ("COPY . /source", "COPY . /other", "installs /source"),
        ("[serve]", "[server]", "the extra server"),
        ("USER 1000", "", "runs as root"),
        ("EXPOSE 8501", "EXPOSE 80", "exposes 80"),
        ("keras_transformer.serve", "keras_transformer.server", "does not run serve"),
        ("--host=0.0.0.0", "--host=127.0.0.1", "listens to itself"),
        ("=/models/translator", "=/models/other", "serves /models/other"),
        ("ENTRYPOINT", "ENTRYPONT", "not one FROM first and one ENTRYPOINT"),
    ],
)
def test_control_a_wrong_line_is_noticed(line, wrong, words):
    found = of_the_page("Dockerfile")
    assert line in found
    assert any(words in fault for fault in faults(found.replace(line, wrong)))


@pytest.mark.skipif(not shutil.which("hadolint"), reason="hadolint is not installed")
def test_hadolint_has_no_complaint():
    done = subprocess.run(["hadolint", "-"], input=of_the_page("Dockerfile").encode())
    assert done.returncode == 0


def test_each_line_of_the_manifest_is_right(client):
    yaml = pytest.importorskip("yaml")
    manifest = yaml.safe_load(of_the_page("inference_service.yaml"))
    expected = ("serving.kserve.io/v1beta1", "InferenceService")
    assert (manifest["apiVersion"], manifest["kind"]) == expected
    [container] = manifest["spec"]["predictor"]["containers"]
    assert container["name"] == "kserve-container"
    port = served_by(["--model_base_path=m", *container["args"]]).rest_api_port
    assert [one["containerPort"] for one in container["ports"]] == [port]
    probe = container["readinessProbe"]["httpGet"]
    assert probe["port"] == port
    assert client.get(probe["path"]).status_code == 200


VARIABLES = {
    "AIP_HTTP_PORT": "8080",
    "AIP_HEALTH_ROUTE": "/v1/endpoints/7/deployedModels/8",
    "AIP_PREDICT_ROUTE": "/v1/endpoints/7/deployedModels/8:predict",
}


@pytest.mark.parametrize(
    "more", [{}, {"AIP_HEALTH_ROUTE": "/v1/models/x", "AIP_PREDICT_ROUTE": "/v1/models/x:predict"}]
)
def test_the_server_answers_at_the_paths_of_vertex_ai(exported, start, more):
    vertex = Vertex.of({**VARIABLES, **more})
    assert vertex.port == 8080
    with start(exported / "m", vertex=vertex) as client:
        health = client.get(vertex.health)
        assert (health.status_code, health.json()["ready"]) == (200, True)
        # As google.cloud.aiplatform sends it.
        plain = {"instances": ["a", "b"], "parameters": None}
        assert client.post(vertex.predict, json=plain).json() == {"predictions": ["A", "B"]}
        parameters = {"signature_name": "translate", "beam_size": 2}
        answer = client.post(vertex.predict, json={"instances": ["a"], "parameters": parameters})
        expected = {"signature_name": "translate", "instances": [{"text": "a", "beam_size": 2}]}
        expected = client.post("/v1/models/m:predict", json=expected)
        assert answer.status_code == 200
        assert answer.json() == expected.json()
        for wrong in ([], {"beam_size": 2}, {"signature_name": 3}, {"timeout": -1}):
            answer = client.post(vertex.predict, json={"instances": ["a"], "parameters": wrong})
            assert answer.status_code == (200 if wrong == [] else 400)
        assert client.get("/health").status_code == 200
        assert client.get("/v1/models/m").status_code == 200


def test_without_its_variables_there_are_no_such_paths(client):
    assert Vertex.of({"AIP_HTTP_PORT": ""}) == Vertex()
    assert client.post("/v1/endpoints/7/deployedModels/8:predict", json={}).status_code == 400


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AIP_HTTP_PORT", "eighty"),
        ("AIP_HTTP_PORT", "65536"),
        ("AIP_HEALTH_ROUTE", "health"),
        ("AIP_PREDICT_ROUTE", "/{x}"),
    ],
)
def test_a_wrong_variable_is_named(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be .* Received: '{re.escape(value)}'\.$"):
        Vertex.of({name: value})


@pytest.mark.parametrize(("flags", "port"), [([], 8080), (["--rest_api_port=0"], 0)])
def test_the_port_is_the_flag_s_or_that_of_vertex_ai(monkeypatch, flags, port):
    from absl import flags as absl_flags

    from keras_transformer import serve
    from keras_transformer.server import running

    served = []
    monkeypatch.setattr(running, "serve", lambda *arguments: served.append(arguments))
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    for name in ("TF_FORCE_GPU_ALLOW_GROWTH", "TF_CPU_ALLOCATOR_USE_BFC"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "")
    monkeypatch.setattr("keras_transformer.startup.spread_over_cores", lambda: 1)
    values = absl_flags.FlagValues()
    parse(values, ["--model_base_path=m", *flags], SECTIONS)
    serve.main(values)
    [(options, vertex)] = served
    assert (options.rest_api_port, vertex) == (port, Vertex.of(VARIABLES))
