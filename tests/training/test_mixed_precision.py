"""Which arithmetic a run uses."""

import pytest

from keras_transformer.training.mixed_precision import FAST_BFLOAT16, dtype_policy, in_words


@pytest.mark.parametrize(
    ("asked", "policy"), [("float32", "float32"), ("bfloat16", "mixed_bfloat16")]
)
@pytest.mark.parametrize("cpu_flags", [[], ["amx_bf16"]], ids=["slow", "fast"])
def test_what_is_asked_for_is_given_whatever_the_processor(asked, policy, cpu_flags):
    assert dtype_policy(asked, cpu_flags) == policy


@pytest.mark.parametrize("flag", sorted(FAST_BFLOAT16))
def test_auto_is_bfloat16_where_the_processor_is_fast_at_it(flag):
    assert dtype_policy("auto", ["sse", flag]) == "mixed_bfloat16"


@pytest.mark.parametrize("cpu_flags", [[], ["avx512f", "avx2", "bf16"]], ids=["none", "others"])
def test_auto_is_float32_elsewhere(cpu_flags):
    assert dtype_policy("auto", cpu_flags) == "float32"


@pytest.mark.parametrize(
    ("cpuinfo", "policy"),
    [
        ("flags\t\t: fpu amx_bf16\n", "mixed_bfloat16"),
        ("flags : fpu\nbugs : amx_bf16\n", "float32"),
    ],
)
def test_auto_reads_the_flags_of_this_machine(monkeypatch, cpuinfo, policy):
    monkeypatch.setattr("pathlib.Path.read_text", lambda path, encoding: cpuinfo)
    assert dtype_policy("auto") == policy


def test_auto_is_float32_where_the_system_tells_nothing(monkeypatch):
    def missing(path, encoding):
        raise FileNotFoundError(path)

    monkeypatch.setattr("pathlib.Path.read_text", missing)
    assert dtype_policy("auto") == "float32"


@pytest.mark.parametrize(
    ("asked", "policy", "on_gpu", "words"),
    [
        ("float32", "float32", True, "float32"),
        ("auto", "float32", False, "float32, because this processor does not multiply in bfloat16"),
        ("auto", "mixed_bfloat16", False, "bfloat16, because this processor multiplies in it"),
        (
            *("auto", "float32", True),
            "float32, chosen by the CPU: the GPU may want --mixed_precision",
        ),
    ],
)
def test_the_processor_is_no_reason_where_a_gpu_computes(asked, policy, on_gpu, words):
    assert in_words(asked, policy, on_gpu) == f"computing in {words}"
