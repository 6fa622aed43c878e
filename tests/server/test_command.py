"""`python -m keras_transformer.serve`, from its first line to its last."""

import concurrent.futures
import json
import signal
import socket
import subprocess
import sys

import pytest

pytest.importorskip("fastapi")
httpx = pytest.importorskip("httpx")

COMMAND = [sys.executable, "-m", "keras_transformer.serve"]


# A signal comes when all is ready, and the web server does not yet look for one.
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
    # Where the test fails half way.
    request.addfinalizer(process.kill)
    serving = line_of(process, "serving")
    assert serving["model"] == "m"
    assert serving["url"].startswith("http://127.0.0.1:")
    return process, serving["url"]


def line_of(process, event):
    """The next line of a server's log that tells of an event."""
    while (line := json.loads(process.stderr.readline()))["event"] != event:
        pass
    return line


def test_sigterm_ends_the_server_when_all_is_answered(exported, request):
    # A request waits an hour for another to share its batch with, unless the server ends.
    process, url = started(request, exported / "m", f"--batch_timeout_micros={3600 * 10**6}")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(predict, url)
        while "serve_queue_batches 1.0" not in httpx.get(f"{url}/metrics").text:
            pass
        process.send_signal(signal.SIGTERM)
        assert answer.result().json() == {"predictions": ["A"]}
    _, rest = process.communicate()
    assert process.returncode == 0
    expected = ["predict", "unloaded", "ended"]
    assert [json.loads(line)["event"] for line in rest.splitlines()] == expected
    with pytest.raises(httpx.ConnectError):
        predict(url)


@pytest.mark.slow
def test_who_reads_no_answer_keeps_a_server_that_ends_no_longer_than_a_request_may_take(
    exported, request
):
    limits = [
        "--max_batch_size=8192",
        f"--max_request_bytes={2**25}",
        f"--max_memory_bytes={2**50}",
    ]
    process, url = started(request, exported / "m", "--request_timeout_ms=5000", *limits)
    body = json.dumps({"instances": ["a" * 1024] * 8192}).encode()
    head = f"POST /v1/models/m:predict HTTP/1.1\r\nHost: m\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.socket() as client:
        # The system keeps little of the answer.
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
def test_a_signal_at_the_last_moment_before_requests_come_ends_the_server_too(exported, name):
    given = [f"--model_base_path={exported / 'm'}", "--rest_api_port=0", name]
    command = [sys.executable, "-c", SIGNALLED, *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0
    events = [json.loads(line)["event"] for line in done.stderr.splitlines()]
    assert events == ["loading", "available", "serving", "unloaded", "ended"]


def test_a_port_that_is_taken_is_told_in_a_line(exported, fresh_shell):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        flags = [f"--model_base_path={exported / 'm'}", f"--rest_api_port={port}"]
        done = fresh_shell("serve", *flags)
    assert done.returncode == 1
    told = f"error: --rest_api_port={port} is taken. Choose another, or 0 for any that is free.\n"
    assert done.stderr.decode() == told


def test_a_server_begun_anew_has_its_port_at_once():
    from keras_transformer.server.running import bind

    with bind("127.0.0.1", 0) as listener:
        listener.listen()
        address = listener.getsockname()
        with socket.create_connection(address) as client:
            # Who hangs up first waits for a minute, and its port with it.
            listener.accept()[0].close()
            assert client.recv(1) == b""
    bind(*address).close()


def test_a_folder_without_versions_ends_the_process(tmp_path, fresh_shell):
    done = fresh_shell("serve", f"--model_base_path={tmp_path}", "--rest_api_port=0")
    assert done.returncode == 1
    assert done.stderr.decode().startswith(f"error: {tmp_path} has no versions: ")


@pytest.mark.parametrize(
    ("host", "words"),
    [("no.such.host.invalid", "is no address"), ("192.0.2.1", "cannot be listened at")],
)
def test_an_address_of_another_machine_is_refused(host, words):
    from keras_transformer.server.running import bind

    with pytest.raises(OSError, match=words):
        bind(host, 0)


def test_what_is_not_installed_is_told(monkeypatch):
    from keras_transformer import serve

    for name in [name for name in sys.modules if name.startswith("keras_transformer.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    told = r"the server needs fastapi. Install it: pip install '.*\[serve\]'"
    with pytest.raises(SystemExit, match=told):
        serve.main(None)
