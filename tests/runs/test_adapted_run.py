"""A run with --lora_rank or --freeze resumes to the last bit; its artefacts are those of any run,
and its adapter alone, added to the base, is the same model.
"""

import shutil

import numpy as np
import pytest
from command_flags import flags_of
from eager import eager_training

from keras_transformer import train
from keras_transformer.inference.loading import load_trained
from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.model_path import starting_point
from keras_transformer.tasks import task_class
from keras_transformer.training import checkpoint
from keras_transformer.training.checkpoint import LOW_RANK, read_archive, with_adapter

FEW = (
    *("--corpus=reverse", "--vocabulary_size=290", "--batch_tokens=2048", "--norelease"),
    *("--validation_sentences=0", "--mixed_precision=float32", "--schedule=constant"),
    *("--learning_rate=0.01", "--warmup_steps=1", "--checkpoint_minutes=0"),
)
SIZES = ("--num_layers=1", "--d_model=8", "--d_ff=16", "--num_heads=2")
KINDS = {"adapted": ["--lora_rank=2", "--lora_alpha=8"], "frozen": ["--freeze=encoder,embedding"]}


def trained(folder, steps, *flags):
    FLAGS = flags_of("train", f"--model_dir={folder}", f"--max_steps={steps}", *FEW, *flags)
    with eager_training():
        train.train(task_class("translation"), FLAGS)
    return RunFolder(folder)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs") / "base", 2, *SIZES)


@pytest.fixture(scope="module", params=KINDS)
def run(request, base):
    """A run of four steps, and its flags."""
    flags = [f"--init_from={base.path}", *KINDS[request.param]]
    return trained(base.path.parent / request.param, 4, *flags), flags


def newest(folder):
    return read_archive(checkpoint.newest(folder.checkpoints))


def test_it_resumes_to_the_last_bit(run, tmp_path, capsys):
    whole, flags = run
    cut = trained(tmp_path / "cut", 2, *flags)
    half = newest(cut)
    trained(cut.path, 4, *flags)
    assert "going on from step 2" in capsys.readouterr().out
    expected, found = newest(whole), newest(cut)
    assert expected.keys() == found.keys()
    for name in expected.keys() - {"progress"}:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    # A control.
    assert any((half[name] != found[name]).any() for name in found.keys() - {"progress"})


def test_another_part_is_another_run(run, tmp_path):
    whole, flags = run
    shutil.copytree(whole.path, tmp_path / "copy")
    for other in ([*flags[:1], "--lora_rank=3"], flags[:1], [*flags[:1], "--freeze=decoder"]):
        with pytest.raises(ValueError, match=r"holds another run: (freeze|lora_\w+) was "):
            trained(tmp_path / "copy", 5, *other)


def test_its_average_has_the_names_and_shapes_of_the_base(run, base):
    averaged, before = (read_archive(folder.averaged) for folder in (run[0], base))
    assert {name: array.shape for name, array in averaged.items()} == {
        name: array.shape for name, array in before.items()
    }
    changed = {name for name in before if (averaged[name] != before[name]).any()}
    if run[0].path.name == "adapted":
        assert {name.rpartition("/")[2] for name in changed} == {"query_kernel", "value_kernel"}
    else:
        assert changed == {name for name in before if name.startswith("weights/decoder/")}


def test_an_adapter_alone_makes_the_same_model_of_the_base(run, base):
    whole, flags = run
    if "--lora_rank=2" not in flags:
        assert not whole.adapter.exists()
        return
    weights, _ = starting_point(base.path)
    expected = read_archive(whole.averaged)
    found = with_adapter(weights, whole.adapter)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    assert any((weights[name] != expected[name]).any() for name in expected)
    # It is what was trained, averaged as it was trained.
    assert all(name.endswith((*LOW_RANK, "base")) for name in read_archive(whole.adapter))
    # A run begins with it, and a command exports with it.
    model, _ = load_trained(RunFolder(base.path, added=whole.adapter))
    for variable in model.weights:
        np.testing.assert_array_equal(variable, expected[f"weights/{variable.path}"])
    with pytest.raises(ValueError, match=r"adapter\.npz was trained on other weights than these"):
        RunFolder(whole.path, added=whole.adapter).load_weights(model)
    with pytest.raises(ValueError, match=r"averaged\.npz is no adapter\. Name the adapter\.npz"):
        RunFolder(base.path, added=whole.averaged).load_weights(model)
