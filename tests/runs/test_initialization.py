"""Starting from another model: shared pieces keep their rows, all else is equal or refused; and
runs with --lora_rank or --freeze, which learn a part of it.
"""

import re
import shutil
import types

import keras
import numpy as np
import pytest
from command_flags import flags_of
from hypothesis import given
from hypothesis import strategies as st
from small_model import eager_training

from keras_transformer import train
from keras_transformer.inference.loading import load_trained
from keras_transformer.models import Transformer
from keras_transformer.models.learned_part import choose_learned, freeze
from keras_transformer.runs import initialization
from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.initialization import TABLE, Initialization, shared_rows
from keras_transformer.runs.model_path import starting_point
from keras_transformer.tasks import task_class
from keras_transformer.training import checkpoint
from keras_transformer.training.checkpoint import LOW_RANK, read_archive, with_adapter
from keras_transformer.training.optimizer import optimizer
from pipelines.whole_files import write_json

OLD = ["<pad>", "<unk>", "▁the", "▁house", "▁lamp"]
NEW = ["<pad>", "<unk>", "▁lamp", "▁ship", "▁the", "▁sea"]


def initialize(model, weights, *vocabularies):
    """With one vocabulary for both sides."""
    both = (pieces and {"source": pieces, "target": pieces} for pieces in vocabularies)
    return initialization.initialize(model, weights, *both)


def transformer(vocabulary_size=5, seed=0, **sizes):
    keras.utils.set_random_seed(seed)
    return Transformer(
        vocabulary_size=vocabulary_size,
        **{"num_layers": 1, "d_model": 4, "d_ff": 8, "num_heads": 2, **sizes},
    )


def weights_of(model):
    return {f"weights/{weight.path}": np.array(np.asarray(weight)) for weight in model.weights}


@pytest.fixture(scope="module")
def old():
    """Weights of a model of the old vocabulary, no two alike."""
    random = np.random.default_rng(5)
    return {
        name: random.normal(size=array.shape).astype(np.float32)
        for name, array in weights_of(transformer()).items()
    }


def same(weights, expected):
    are_equal = (np.array_equal(weights[name], expected.get(name)) for name in weights)
    return weights.keys() == expected.keys() and all(are_equal)


@pytest.mark.parametrize("vocabularies", [(), (OLD, OLD)])
def test_a_model_of_the_same_vocabulary_takes_all_weights(old, vocabularies):
    model = transformer(seed=1)
    assert initialize(model, old, *vocabularies) == Initialization(copied_rows=5, new_rows=0)
    assert same(weights_of(model), old)


def test_shared_pieces_keep_their_rows_and_new_ones_are_fresh(old):
    model, fresh = transformer(6, seed=1), weights_of(transformer(6, seed=1))[TABLE]
    assert initialize(model, old, NEW, OLD) == Initialization(copied_rows=4, new_rows=2)
    weights = weights_of(model)
    for row, piece in enumerate(NEW):
        expected = old[TABLE][OLD.index(piece)] if piece in OLD else fresh[row]
        np.testing.assert_array_equal(weights[TABLE][row], expected)
    assert same({**weights, TABLE: 0}, {**old, TABLE: 0})


def test_control_a_vocabulary_in_another_order_moves_the_rows_though_the_shape_is_the_same(old):
    model = transformer(seed=1)
    assert initialize(model, old, OLD[::-1], OLD) == Initialization(5, 0)
    np.testing.assert_array_equal(weights_of(model)[TABLE], old[TABLE][::-1])
    assert not same(weights_of(model), old)


def test_proposal_heads_are_new_where_the_old_model_has_none_and_copied_otherwise(old):
    model = transformer(seed=1, block_size=3)
    fresh = weights_of(model)
    heads = {name for name in fresh if "/proposal_heads/" in name}
    initialize(model, old, OLD, OLD)
    assert len(heads) == 14
    assert same(weights_of(model), {**old, **{name: fresh[name] for name in heads}})
    again = transformer(seed=2, block_size=3)
    initialize(again, weights_of(model), OLD, OLD)
    assert same(weights_of(again), weights_of(model))
    # Another number of heads does not fit, and a model without heads refuses them.
    for misfit, name in ((transformer(block_size=2), "maps"), (transformer(), "attention_norm")):
        with pytest.raises(ValueError, match=f"Received: weights/proposal_heads/{name}/"):
            initialize(misfit, weights_of(model), OLD, OLD)


def test_a_shallower_model_takes_layers_at_equal_distances():
    deep = weights_of(transformer(num_layers=5, num_decoder_layers=4, norm="pre"))
    model = transformer(seed=1, num_layers=3, num_decoder_layers=1, norm="pre")
    names = list(weights_of(model))
    fewer, note = initialization.fewer_layers(deep, names)
    assert note == "; of 5 layers of the encoder 0, 2, 4; of 4 layers of the decoder 0"
    initialize(model, fewer, OLD, OLD)
    weights = weights_of(model)
    for name in names:
        old_name = name.replace("encoder/layer_2/", "encoder/layer_4/")
        old_name = old_name.replace("encoder/layer_1/", "encoder/layer_2/")
        np.testing.assert_array_equal(weights[name], deep[old_name], err_msg=name)
    # From a model that is as deep or shallower all layers are taken; missing ones are refused.
    for few in (weights, weights_of(transformer(num_layers=1))):
        assert initialization.fewer_layers(few, names) == (few, "")
    with pytest.raises(ValueError, match=r"encoder/layer_3/.* is missing"):
        initialize(transformer(num_layers=5, norm="pre"), fewer)


@given(st.integers(1, 40), st.integers(1, 40))
def test_layers_that_are_taken_differ_and_reach_from_the_first_to_the_last(few, more):
    many = few + more
    layers = initialization._spaced(few, many)
    assert layers == sorted(set(layers))
    assert (layers[0], layers[-1]) == (0, many - 1 if few > 1 else 0)
    assert len(layers) == few
    gaps = np.diff(layers)
    assert gaps.max(initial=0) - gaps.min(initial=many) <= 1


def test_a_new_piece_begins_as_the_mean_of_its_parts_of_the_old_vocabulary(old):
    parts = {"▁ship": [2, 3], "▁sea": []}.get
    model, fresh = transformer(6, seed=1), weights_of(transformer(6, seed=1))[TABLE]
    both = {"source": parts, "target": parts}
    pieces = ({"source": NEW, "target": NEW}, {"source": OLD, "target": OLD})
    report = initialization.initialize(model, old, *pieces, parts=both)
    assert report == Initialization(copied_rows=4, new_rows=2, mean_rows=1)
    table = weights_of(model)[TABLE]
    mean = (old[TABLE][2] + old[TABLE][3]) / 2
    np.testing.assert_allclose(table[NEW.index("▁ship")], mean, rtol=1e-6)
    np.testing.assert_array_equal(table[NEW.index("▁sea")], fresh[NEW.index("▁sea")])
    for piece in set(NEW) & set(OLD):
        np.testing.assert_array_equal(table[NEW.index(piece)], old[TABLE][OLD.index(piece)])


def test_new_pieces_whose_embeddings_do_not_learn_are_refused(old):
    model = transformer(6, seed=1)
    freeze(model, ["embedding"])
    before = weights_of(model)
    with pytest.raises(ValueError, match=r"^2 of 6 pieces are new, .* --freeze\. Take the old"):
        initialize(model, old, NEW, OLD)
    assert same(weights_of(model), before)
    # Controls: all else may be frozen, and so may embeddings if no piece is new.
    layers = transformer(6, seed=1)
    freeze(layers, ["encoder", "decoder"])
    assert initialize(layers, old, NEW, OLD).new_rows == 2
    reordered = transformer(seed=1)
    freeze(reordered, ["embedding"])
    assert initialize(reordered, old, OLD[::-1], OLD).new_rows == 0


PIECES = st.lists(st.text("ab▁", min_size=1, max_size=3), unique=True, min_size=1, max_size=12)


@given(pieces=PIECES, old_pieces=PIECES)
def test_rows_are_shared_where_the_pieces_are_the_same_strings(pieces, old_pieces):
    rows = shared_rows(pieces, old_pieces)
    assert all(pieces[row] == old_pieces[old_row] for row, old_row in rows)
    assert {pieces[row] for row, _ in rows} == set(pieces) & set(old_pieces)
    assert len(rows) == len(set(pieces) & set(old_pieces))
    assert shared_rows(old_pieces, pieces) == sorted((old_row, row) for row, old_row in rows)
    assert shared_rows(pieces, pieces) == [(row, row) for row in range(len(pieces))]


def test_equal_pieces_are_paired_in_their_order():
    assert shared_rows(["<s>", "a", "<s>"], ["b", "<s>", "<s>", "a"]) == [(0, 1), (1, 3), (2, 2)]
    # A vocabulary begins with its own rows.
    assert shared_rows(["a", "<s>", "<s>"], ["a", "<s>", "<s>"]) == [(0, 0), (1, 1), (2, 2)]


def test_the_optimizer_is_not_touched(old):
    model = transformer()
    model.compile(optimizer(0.01, ema=0.9), "mse")
    model.optimizer.build(model.trainable_variables)
    for number, slot in enumerate(model.optimizer.variables):
        slot.assign(np.full(slot.shape, number))
    before = [np.array(np.asarray(slot)) for slot in model.optimizer.variables]
    initialize(model, old)
    both = zip(model.optimizer.variables, before, strict=True)
    assert all(np.array_equal(slot, expected) for slot, expected in both)


@pytest.mark.parametrize(("misfits", "counted"), [(3, []), (4, ["and 1 more"])])
def test_three_misfits_are_named_and_the_others_counted(old, misfits, counted):
    wrong = {name: np.zeros((1, 1), np.float32) for name in list(old)[1 : 1 + misfits]}
    with pytest.raises(ValueError) as raised:
        initialize(transformer(), {**old, **wrong})
    message = str(raised.value)
    assert [name in message for name in wrong] == [True] * 3 + [False] * (misfits - 3)
    assert re.findall(r"and \d+ more", message) == counted


LAYER = "weights/encoder/layer_0/self_attention/query_kernel"


@pytest.mark.parametrize(
    ("sizes", "vocabularies", "message"),
    [
        ({"d_model": 6}, (), rf"{TABLE} is \(5, 4\), not \(5, 6\); {LAYER} is \(4, 4\), not \(6,"),
        ({"d_model": 6}, (OLD, OLD), rf"{TABLE} is \(5, 4\), not .*; and \d+ more\. Give .* sizes"),
        ({"d_ff": 9}, (OLD, OLD), r"feed_forward/inner/kernel is \(4, 8\), not \(4, 9\); .*Give t"),
        ({"num_layers": 2}, (), r"layer_1/self_attention/query_kernel is missing, not \(4, 4\);"),
        ({"vocabulary_size": 6}, (), rf"{TABLE} is \(5, 4\), not \(6, 4\)\. Pass both vocabularie"),
        (
            {"tie_embeddings": "decoder"},
            (OLD, OLD),
            "source_embedding/table is missing, .*--tie_e",
        ),
        ({"vocabulary_size": 6}, (OLD, OLD), r"`pieces` must name the 6 rows .*: 5 pieces\."),
        ({}, (OLD, NEW), r"`old_pieces` must name the 5 rows .*: 6 pieces\."),
    ],
)
def test_weights_that_do_not_fit_are_refused_and_none_is_set(old, sizes, vocabularies, message):
    model = transformer(**sizes)
    before = weights_of(model)
    with pytest.raises(ValueError, match=message):
        initialize(model, old, *vocabularies)
    assert same(weights_of(model), before)


def test_a_layer_too_many_is_refused_by_name(old):
    message = r"weights/encoder/layer_1/gain is \(4,\), not in the model\. Give the model the sizes"
    with pytest.raises(ValueError, match=message):
        initialize(transformer(), {**old, "weights/encoder/layer_1/gain": np.ones(4)})


def test_a_refusal_of_another_family_names_the_tasks_and_the_misfits(old, tmp_path, monkeypatch):
    write_json(RunFolder(tmp_path).description, {"task": "masking"})
    side = types.SimpleNamespace(pieces=OLD)
    both = types.SimpleNamespace(source=side, target=side)
    encoder = {name: array for name, array in old.items() if "/decoder/" not in name}
    monkeypatch.setattr(initialization, "starting_point", lambda path: (encoder, both))
    pieces = {"source": OLD, "target": OLD}
    task = types.SimpleNamespace(name="translation", pieces=pieces, carried_over=None)
    task.description = dict
    message = (
        r"of the task masking, does not fit a model of the task translation: .*decoder/layer_0/"
    )
    with pytest.raises(ValueError, match=message):
        initialization.start_from(str(tmp_path), task, transformer())
    task.pieces = None
    task.name = "image_classification"
    message = f"^{tmp_path}, of the task masking, does not fit a model of the task image_class"
    with pytest.raises(ValueError, match=message):
        initialization.start_from(str(tmp_path), task, transformer())
    task.pieces = pieces
    task.carried_over = ["embedding", "encoder"]
    model = transformer(seed=1)
    initialization.start_from(str(tmp_path), task, model)
    weights = weights_of(model)
    assert all(np.array_equal(weights[name], encoder[name]) for name in encoder)
    assert not same(weights, old)


@pytest.mark.parametrize("layers_of_adapter", [3, 2])
def test_a_shallower_model_takes_adapters_of_its_own_and_of_the_whole(
    layers_of_adapter, tmp_path, monkeypatch
):
    write_json(RunFolder(tmp_path).description, {})
    deep = weights_of(transformer(num_layers=3))
    monkeypatch.setattr(initialization, "starting_point", lambda path: (deep, None))
    task = types.SimpleNamespace(name="t", pieces=None, carried_over=None, description=dict)

    def started(model, adapter=None):
        initialization.start_from(str(tmp_path), task, model, adapter)
        return weights_of(model)

    values = {"lora_rank": 1, "lora_on": ["query"], "lora_alpha": None, "freeze": ()}
    adapted = transformer(num_layers=layers_of_adapter, seed=1)
    choose_learned(adapted, values, LOW_RANK)
    trained = started(adapted)
    for name in checkpoint.adapters_in(trained):
        trained[name] = np.ones_like(trained[name])
    checkpoint.write_adapter(tmp_path / "adapter.npz", trained)
    plain, learned = (
        started(transformer(num_layers=2, seed=2), adapter)
        for adapter in (None, tmp_path / "adapter.npz")
    )
    for name, array in plain.items():
        added = name.endswith("/query_kernel")
        np.testing.assert_allclose(learned[name], array + added, rtol=1e-6, err_msg=name)


# A run with --lora_rank or --freeze resumes to the last bit; its artefacts are those of any run,
# and its adapter alone, added to the base, is the same model.
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
    return trained(tmp_path_factory.mktemp("runs") / "base", 1, *SIZES)


@pytest.fixture(scope="module", params=KINDS)
def run(request, base):
    """A run of two steps, and its flags."""
    flags = [f"--init_from={base.path}", *KINDS[request.param]]
    return trained(base.path.parent / request.param, 2, *flags), flags


@pytest.mark.parametrize("wrong", ["--freeze=encodr", "--adapter=nowhere", "--lora_on=quer"])
def test_a_wrong_name_is_refused_before_text_is_tokenized(wrong, base, tmp_path, capsys):
    adapts = ["--lora_rank=2"] if "lora" in wrong else []
    with pytest.raises((ValueError, OSError), match=r"encodr is no|at nowhere|quer is no"):
        trained(tmp_path / "new", 1, f"--init_from={base.path}", wrong, *adapts)
    assert "dropped" not in capsys.readouterr().out


def newest(folder):
    return read_archive(checkpoint.read_newest(folder.checkpoints)[0])


def test_a_partly_learned_run_resumes_to_the_last_bit(run, tmp_path, capsys):
    whole, flags = run
    cut = trained(tmp_path / "cut", 1, *flags)
    half = newest(cut)
    trained(cut.path, 2, *flags)
    assert "going on from step 1" in capsys.readouterr().out
    expected, resumed = newest(whole), newest(cut)
    assert expected.keys() == resumed.keys()
    for name in expected.keys() - {"progress"}:
        np.testing.assert_array_equal(resumed[name], expected[name], err_msg=name)
    assert any((half[name] != resumed[name]).any() for name in resumed.keys() - {"progress"})


def test_a_run_that_learns_another_part_is_refused(run, tmp_path):
    whole, flags = run
    shutil.copytree(whole.path, tmp_path / "copy")
    for changed in ([*flags[:1], "--lora_rank=3"], flags[:1], [*flags[:1], "--freeze=decoder"]):
        with pytest.raises(ValueError, match=r"holds another run: (freeze|lora_\w+) was "):
            trained(tmp_path / "copy", 3, *changed)


def test_its_average_has_the_names_and_shapes_of_the_base(run, base):
    averaged, before = (read_archive(folder.averaged) for folder in (run[0], base))
    shapes = {name: array.shape for name, array in averaged.items()}
    assert shapes == {name: array.shape for name, array in before.items()}
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
    adapted = with_adapter(weights, whole.adapter)
    for name in expected:
        np.testing.assert_array_equal(adapted[name], expected[name], err_msg=name)
    assert any((weights[name] != expected[name]).any() for name in expected)
    # It holds what was trained and nothing else.
    assert all(name.endswith((*LOW_RANK, "base")) for name in read_archive(whole.adapter))
    # A run starts with it, and a command exports with it.
    model, _ = load_trained(RunFolder(base.path, added=whole.adapter))
    for variable in model.weights:
        np.testing.assert_array_equal(variable, expected[f"weights/{variable.path}"])
    with pytest.raises(ValueError, match=r"adapter\.npz was trained on other .* --model_dir in"):
        RunFolder(whole.path, added=whole.adapter).load_weights(model)
    with pytest.raises(ValueError, match=r"averaged\.npz is no adapter\. Name the adapter\.npz"):
        RunFolder(base.path, added=whole.averaged).load_weights(model)
