"""`python -m keras_transformer.serve`, from its first line to its last, and where it runs: the
Dockerfile and the manifest of docs/serving.md, read line by line, and Vertex AI's paths.
"""

import concurrent.futures
import configparser
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys

import pytest
from absl import flags as absl_flags
from shell import wait_until

from keras_transformer import serve
from keras_transformer.flags import parse
from keras_transformer.server.options import ServeOptions, Vertex

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

import httpx

from keras_transformer.server import running

COMMAND = [sys.executable, "-m", "keras_transformer.serve"]
# Raises a signal when the model is loaded, and the web server has no handler for it yet.
SIGNALLED = """
import signal
import sys

import uvicorn


class Late(uvicorn.Server):
    def run(self, sockets=None):
        signal.raise_signal(number)
        super().run(sockets)


number = signal.Signals[sys.argv.pop()]
uvicorn.Server = Late
from keras_transformer import flags, serve

flags.run(serve.main, serve.SECTIONS)
"""


def predict(url):
    return httpx.post(f"{url}/v1/models/m:predict", json={"instances": ["a"]}, timeout=60)


def started(request, folder, *flags):
    """A server's process, and its URL."""
    flags = [f"--model_base_path={folder}", "--rest_api_port=0", *flags]
    process = subprocess.Popen([*COMMAND, *flags], stderr=subprocess.PIPE, text=True)
    # In case the test fails.
    request.addfinalizer(process.kill)
    serving = line_of(process, "serving")
    assert serving["model"] == "m"
    assert serving["url"].startswith("http://127.0.0.1:")
    return process, serving["url"]


def line_of(process, event):
    """The next line of a server's log with this event."""
    while (line := json.loads(process.stderr.readline()))["event"] != event:
        pass
    return line


def test_sigterm_ends_the_server_when_all_is_answered(exported, request):
    # The request waits an hour for others in its batch, unless the server ends.
    process, url = started(request, exported / "m", f"--batch_timeout_micros={3600 * 10**6}")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(predict, url)
        wait_until(lambda: "serve_queue_batches 1.0" in httpx.get(f"{url}/metrics").text)
        process.send_signal(signal.SIGTERM)
        assert answer.result().json() == {"predictions": ["A"]}
    _, rest = process.communicate()
    assert process.returncode == 0
    expected = ["predict", "unloaded", "ended"]
    assert [json.loads(line)["event"] for line in rest.splitlines()] == expected
    with pytest.raises(httpx.ConnectError):
        predict(url)


@pytest.mark.slow
def test_a_client_that_reads_no_answer_delays_the_end_by_one_timeout_at_most(exported, request):
    limits = [
        "--max_batch_size=8192",
        f"--max_request_bytes={2**25}",
        f"--max_memory_bytes={2**50}",
    ]
    process, url = started(request, exported / "m", "--request_timeout_ms=5000", *limits)
    body = json.dumps({"instances": ["a" * 1024] * 8192}).encode()
    head = f"POST /v1/models/m:predict HTTP/1.1\r\nHost: m\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.socket() as client:
        # The operating system buffers little of the answer.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", int(url.rpartition(":")[2])))
        client.sendall(head.encode() + body)
        assert line_of(process, "predict")["status"] == 200
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(rest.splitlines()[-1])["event"] == "ended"
    assert "Traceback" not in rest


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_at_the_last_moment_before_requests_come_ends_the_server_too(
    exported, fresh_shell, name
):
    flags = [f"--model_base_path={exported / 'm'}", "--rest_api_port=0"]
    process = fresh_shell.program(SIGNALLED, *flags, name)
    assert process.returncode == 0
    events = [json.loads(line)["event"] for line in process.stderr.splitlines()]
    assert events == ["loading", "available", "serving", "unloaded", "ended"]


def test_a_port_in_use_is_told_in_a_line(exported, fresh_shell):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        flags = [f"--model_base_path={exported / 'm'}", f"--rest_api_port={port}"]
        process = fresh_shell("serve", *flags)
    assert process.returncode == 1
    error = f"error: --rest_api_port={port} is taken. Choose another, or 0 for any that is free.\n"
    assert process.stderr.decode() == error


def test_of_two_servers_that_start_at_one_port_the_later_is_told():
    with running.bind("127.0.0.1", 0) as first, running.bind(*first.getsockname()) as second:
        running.listen(first)
        with pytest.raises(OSError, match=r"^--rest_api_port=\d+ is taken\. Choose another"):
            running.listen(second)


def test_a_restarted_server_has_its_port_at_once():
    with running.bind("127.0.0.1", 0) as listener:
        listener.listen()
        address = listener.getsockname()
        with socket.create_connection(address) as client:
            # The side that hangs up first keeps its port in TIME_WAIT for a minute.
            listener.accept()[0].close()
            assert client.recv(1) == b""
    running.bind(*address).close()


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("no.such.host.invalid", "is no address"),
        ("a" * 64, "is no address"),
        ("192.0.2.1", "cannot listen at --host="),
    ],
)
def test_an_address_of_another_machine_is_refused(host, words):
    with pytest.raises(OSError, match=words):
        running.bind(host, 0)


def test_a_missing_package_is_told_with_its_remedy(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("keras_transformer.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    message = r"^the server needs fastapi, which is not installed: pip install '.*\[serve\]'\.$"
    with pytest.raises(ValueError, match=message):
        serve.main(None)


# The Dockerfile, the manifest, and the paths that Vertex AI names.
ROOT = pathlib.Path(__file__).parents[2]


def block_of(file):
    """The block of docs/serving.md that shows this file."""
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    [block] = re.findall(rf"^```text {file}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return block


def options_of(arguments):
    """The options that `serve` reads from arguments."""
    values = absl_flags.FlagValues()
    parse(values, arguments, serve.SECTIONS)
    return ServeOptions(**{key: values[key].value for key in values if hasattr(ServeOptions, key)})


def test_each_line_of_the_dockerfile_is_right():
    lines = re.sub(r"\\\n\s*", " ", block_of("Dockerfile")).splitlines()
    names, values = zip(*(line.split(maxsplit=1) for line in lines), strict=True)
    assert names == ("FROM", "COPY", "RUN", "COPY", "USER", "EXPOSE", "ENTRYPOINT")
    image, source, commands, model, user, port, entrypoint = values
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    [version] = re.findall(r"^python:(3\.\d+)-slim$", image)
    assert f"Python :: {version}" in config["metadata"]["classifiers"]
    install = r"pip install --no-cache-dir '(.*)\[(\w+)\]' && useradd --uid ([1-9]\d*) server"
    folder, extra, created = re.fullmatch(install, commands).groups()
    assert extra in config["options.extras_require"]
    checkout, copied = model.split()
    assert checkout.startswith("saved_models/")
    python, flag, module, *flags = json.loads(entrypoint)
    options = options_of(flags)
    assert (python, flag, module) == ("python", *COMMAND[1:])
    assert options.host == "0.0.0.0"
    served = (source, user, port, copied)
    assert served == (f". {folder}", created, str(options.rest_api_port), options.model_base_path)


@pytest.mark.skipif(not shutil.which("hadolint"), reason="hadolint is not installed")
def test_hadolint_has_no_complaint():
    process = subprocess.run(["hadolint", "-"], input=block_of("Dockerfile").encode())
    assert process.returncode == 0


def test_each_line_of_the_manifest_is_right(client):
    yaml = pytest.importorskip("yaml")
    manifest = yaml.safe_load(block_of("inference_service.yaml"))
    expected = ("serving.kserve.io/v1beta1", "InferenceService")
    assert (manifest["apiVersion"], manifest["kind"]) == expected
    [container] = manifest["spec"]["predictor"]["containers"]
    assert container["name"] == "kserve-container"
    port = options_of(["--model_base_path=m", *container["args"]]).rest_api_port
    assert [entry["containerPort"] for entry in container["ports"]] == [port]
    probe = container["readinessProbe"]["httpGet"]
    assert probe["port"] == port
    assert client.get(probe["path"]).status_code == 200


VARIABLES = {
    "AIP_HTTP_PORT": "8080",
    "AIP_HEALTH_ROUTE": "/v1/endpoints/7/deployedModels/8",
    "AIP_PREDICT_ROUTE": "/v1/endpoints/7/deployedModels/8:predict",
}


@pytest.mark.parametrize(
    "paths", [{}, {"AIP_HEALTH_ROUTE": "/v1/models/x", "AIP_PREDICT_ROUTE": "/v1/models/x:predict"}]
)
def test_the_server_answers_at_the_paths_of_vertex_ai(exported, start, paths):
    vertex = Vertex.of({**VARIABLES, **paths})
    assert vertex.port == 8080
    with start(exported / "m", vertex=vertex) as client:
        health = client.get(vertex.health)
        assert (health.status_code, health.json()["ready"]) == (200, True)
        # google.cloud.aiplatform sends it so.
        plain = {"instances": ["a", "b"], "parameters": None}
        assert client.post(vertex.predict, json=plain).json() == {"predictions": ["A", "B"]}
        parameters = {"signature_name": "translate", "beam_size": 2}
        answer = client.post(vertex.predict, json={"instances": ["a"], "parameters": parameters})
        document = {"signature_name": "translate", "instances": [{"text": "a", "beam_size": 2}]}
        expected = client.post("/v1/models/m:predict", json=document)
        assert answer.status_code == 200
        assert answer.json() == expected.json()
        for wrong in ([], {"beam_size": 2}, {"signature_name": 3}, {"timeout": -1}):
            answer = client.post(vertex.predict, json={"instances": ["a"], "parameters": wrong})
            assert answer.status_code == (200 if wrong == [] else 400)
        assert client.get("/health").status_code == 200
        assert client.get("/v1/models/m").status_code == 200


def test_without_the_variables_of_vertex_ai_its_paths_do_not_exist(client):
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
    served = []
    monkeypatch.setattr(running, "serve", lambda *arguments: served.append(arguments))
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    for name in ("TF_FORCE_GPU_ALLOW_GROWTH", "TF_CPU_ALLOCATOR_USE_BFC"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "")
    monkeypatch.setattr("keras_transformer.startup.spread_over_cores", lambda: 1)
    values = absl_flags.FlagValues()
    parse(values, ["--model_base_path=m", *flags], serve.SECTIONS)
    serve.main(values)
    [(options, vertex)] = served
    assert (options.rest_api_port, vertex) == (port, Vertex.of(VARIABLES))
