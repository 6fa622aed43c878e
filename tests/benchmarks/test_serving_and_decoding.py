"""What benchmarks of decoding and serving say of what they have measured; nothing is decoded."""

import contextlib
import types

import pytest

LINES = ["one", "two", "three"]
SAVED_MODEL = "--model_base_path=saved_models/none"


@pytest.mark.parametrize("clients", [1, 3])
@pytest.mark.parametrize("answer", [str.upper, str.title])
def test_what_is_served_as_the_direct_call_is_not_told_to_differ(
    benchmark_of, monkeypatch, capsys, clients, answer
):
    serving = benchmark_of("limits.serving", SAVED_MODEL, f"--clients={clients}", "--alone=2")
    server = types.SimpleNamespace(seconds=1.0, ended=0)
    direct = {"loaded": 1.0, "first": 1.0, "seconds": 1.0, "translations": ["ONE", "TWO", "THREE"]}
    monkeypatch.setattr(serving, "sentences", lambda most: LINES)
    monkeypatch.setattr(serving, "running", lambda folder: contextlib.nullcontext(server))
    monkeypatch.setattr(serving, "direct_in_a_fresh_process", lambda: direct)

    def ask(server, lines, clients):
        return list(map(answer, lines)), [0.5] * len(lines), 0.5 * len(lines) / clients

    monkeypatch.setattr(serving, "ask", ask)
    if answer is str.upper:
        serving.main([])
    else:
        with pytest.raises(SystemExit, match="DIFFERENT"):
            serving.main([])
    printed = capsys.readouterr().out
    assert "| served, 1 client | 2.0 | 500 | 500 |" in printed
    assert f"{clients} clients against one: {clients:.1f}" in printed


def test_cores_are_shared_out_before_a_corpus_is_loaded(benchmark_of, monkeypatch):
    pytest.importorskip("ctranslate2")
    agreement = benchmark_of("peers.agreement")
    called = []

    class End(Exception):
        pass

    def load(**settings):
        called.append("load")
        raise End

    run = types.SimpleNamespace(read_description=lambda: {"corpus": {}})
    monkeypatch.setattr(agreement, "RunFolder", lambda path: run)
    monkeypatch.setattr(agreement, "start_tensorflow", lambda: called.append("start"))
    monkeypatch.setattr(agreement, "spread_over_cores", lambda: called.append("spread"))
    monkeypatch.setattr(agreement.corpora, "load", load)
    with pytest.raises(End):
        agreement.main([])
    assert called == ["start", "spread", "load"]
