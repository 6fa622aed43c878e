"""Every flag of `train` reaches its place, and decides what is measured and chosen."""

import dataclasses
import json
import math
import pathlib
import re
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from command_flags import EVERY_FLAG, new_model, new_module, values_of_task
from oracles import paper

from keras_transformer.decoding import DecodingOptions
from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.run import Run
from keras_transformer.tasks import TASKS, TRAINING, task_class
from keras_transformer.tasks.corpus_settings import corpus_settings
from keras_transformer.tasks.parsing.task import Parsing
from keras_transformer.tasks.task import Task
from keras_transformer.tasks.translation import choices
from keras_transformer.tasks.translation.choices import SEGMENTATIONS
from keras_transformer.tasks.translation.module import decoding_options
from keras_transformer.tasks.translation.task import Translation
from keras_transformer.training import checkpoint, fit
from keras_transformer.training.averaging import choose_weights
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.objective import LIKELIHOOD, RDrop, ScheduledSampling
from keras_transformer.training.options import Seed
from keras_transformer.training.validation import BestSoFar
from pipelines import corpora, vocabularies
from pipelines.batches import texts
from pipelines.vocabularies.protected_spans import ProtectedSpans

TINY = (
    *("--flagfile=toy.flags", "--mixed_precision=float32", "--vocabulary_size=290"),
    *("--d_model=8", "--d_ff=16", "--num_heads=2", "--warmup_steps=5", "--batch_tokens=4096"),
    *("--validation_sentences=0", "--norelease"),
)


@pytest.fixture
def run_of(tmp_path):
    """A function of arguments: a `Run` of a tiny translator."""

    def run(*arguments, task=Translation):
        values = values_of_task(task, *TINY, f"--model_dir={tmp_path / 'run'}", *arguments)
        return Run(task, values, TRAINING)

    return run


@pytest.fixture
def prepared(run_of):
    """A function of arguments: a `Run` of a tiny translator whose folder holds what it needs."""

    def run(*arguments):
        prepared_run = run_of(*arguments)
        prepared_run._prepare_folder()
        return prepared_run

    return run


@dataclasses.dataclass
class Setup:
    """What a run would train with."""

    model: keras.Model
    feed: fit.Feed
    steps_per_epoch: int
    last_step: int
    watchers: list

    def places(self):
        """The values of flags where they are used."""
        optimizer = self.model.optimizer
        function = self.model.train_function
        watchers = {type(watcher).__name__: watcher for watcher in self.watchers}
        best = watchers.get("BestSoFar")
        return {
            "ema": optimizer.use_ema and optimizer.ema_momentum,
            "clip_norm": optimizer.global_clipnorm,
            "weight_decay": optimizer.weight_decay,
            "rates": [float(optimizer._learning_rate(updates)) for updates in (4, 19, 39)],
            "accumulate": function.accumulate,
            "static_shapes": function.static_shapes,
            "objective": function.objective,
            "is_compiled": isinstance(
                function._gradients, tf.types.experimental.PolymorphicFunction
            ),
            "label_smoothing": self.model.loss.label_smoothing,
            "dtype": self.model.decoder.compute_dtype,
            "steps": self.last_step,
            "epochs": self.last_step / self.steps_per_epoch,
            "minutes": watchers["StopAtLimit"].minutes,
            "best": best and (best.monitor, best.higher_is_better, best.patience),
            "keep_checkpoints": watchers["Checkpointing"].keep,
            "checkpoint_minutes": watchers["Checkpointing"].minutes,
            "average_over": watchers["Checkpointing"].average_over,
        }


@pytest.fixture
def setup_of(run_of, monkeypatch):
    """A function of arguments: the `Setup`; nothing is trained."""
    monkeypatch.setattr(Run, "_finish", lambda *arguments, is_cut: None)

    def setup(*arguments):
        setups = []
        monkeypatch.setattr(fit, "fit", lambda *setting: setups.append(Setup(*setting)))
        run_of(*arguments).train()
        return setups[0]

    return setup


DEFAULTS = {
    "ema": False,
    "clip_norm": None,
    "weight_decay": None,
    "rates": pytest.approx([0.5 * (8 * step) ** -0.5 for step in (5, 20, 40)]),
    "accumulate": 1,
    "static_shapes": False,
    "objective": LIKELIHOOD,
    "is_compiled": False,
    "label_smoothing": 0,
    "dtype": "float32",
    "epochs": 20,
    "minutes": math.inf,
    "best": None,
    "average_over": "epochs",
}
CONSTANT = pytest.approx([0.01] * 3, rel=1e-6)
# Flags, and the values that reach their places.
PLACES = {
    "defaults": ("", DEFAULTS),
    "noam": (
        "--ema=0.75 --clip_norm=0.3 --accumulate=3 --static_shapes --label_smoothing=0.2 "
        "--max_steps=7 --max_minutes=3 --keep_checkpoints=1 --checkpoint_minutes=4 "
        "--average_over=minutes --patience=5 --learning_rate_scale=2",
        {
            "ema": 0.75,
            "clip_norm": 0.3,
            "accumulate": 3,
            "static_shapes": True,
            "label_smoothing": 0.2,
            "steps": 7,
            "minutes": 3,
            "keep_checkpoints": 1,
            "checkpoint_minutes": 4,
            "average_over": "minutes",
            "best": ("cross_entropy", False, 5),
            "rates": pytest.approx([2 * (8 * step) ** -0.5 for step in (5, 20, 40)]),
        },
    ),
    # Adam takes no decay.
    "constant": (
        "--max_epochs=2 --keep_best=cross_entropy --mixed_precision=bfloat16 --optimizer=adamw "
        "--weight_decay=0.02 --jit_compile --r_drop=3 --schedule=constant --learning_rate=0.01",
        {
            "epochs": 2,
            "best": ("cross_entropy", False, None),
            "dtype": "bfloat16",
            "weight_decay": 0.02,
            "is_compiled": True,
            "objective": RDrop(3),
            "rates": CONSTANT,
        },
    ),
    "cosine": (
        "--validation_sentences=5 --keep_best=bleu --patience=2 --max_steps=40 "
        "--scheduled_sampling=0.25 --scheduled_sampling_steps=70 --schedule=cosine "
        "--learning_rate=0.01",
        {"best": ("bleu", True, 2), "steps": 40, "objective": ScheduledSampling(0.25, 70)},
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_the_value_of_a_flag_reaches_its_place(setup_of, name):
    flags, expected = PLACES[name]
    setup = setup_of(*flags.split())
    places = setup.places()
    assert {place: places[place] for place in expected} == expected
    if name == "defaults":
        assert isinstance(setup.model.loss, LabelSmoothedCrossEntropy)
    if name == "cosine":
        assert places["rates"][::2] == pytest.approx([0.01, 0], rel=1e-6, abs=1e-8)


def test_static_shapes_merge_buckets(prepared):
    described = []
    for flag in ("--nostatic_shapes", "--static_shapes"):
        run = prepared(flag, "--batch_tokens=512")
        described.append(run._batches().describe())
    shapes = [int(words.split(" in ")[1].split(" ")[0]) for words in described]
    assert shapes[1] < shapes[0]


def test_sizes_and_seed_reach_the_model(run_of, prepared):
    run = run_of("--num_layers=2", "--dropout=0.3", "--d_k=6")
    expected = {"num_layers": 2, "dropout": 0.3, "d_k": 6, "d_model": 8}
    assert expected.items() <= dataclasses.asdict(run.task.hyperparameters).items()

    def weights_of(seed):
        run = prepared(f"--seed={seed}")
        return new_model(run.task).get_weights()

    first, second, again = map(weights_of, (1, 2, 1))
    assert all(np.array_equal(here, there) for here, there in zip(first, again, strict=True))
    assert not all(np.array_equal(here, there) for here, there in zip(first, second, strict=True))


def table_of(model):
    [table] = (weight for weight in model.weights if weight.path == "embedding/table")
    return np.asarray(keras.ops.stop_gradient(table))


def test_embeddings_of_a_new_run_start_from_cooccurrences(setup_of):
    random, cooccurring, again = (
        table_of(setup_of(f"--embedding_initialization={start}").model)
        for start in ("drawn", "cooccurrence", "cooccurrence")
    )
    assert np.abs(cooccurring - random).max() > 0.1
    np.testing.assert_array_equal(again, cooccurring)


def one_step(model, feed, steps_per_epoch, last_step, watchers):
    """Stands for `fit`: a step that moves every weight by 1."""
    for weight in model.weights:
        weight.assign_add(tf.ones_like(weight))
    pretend_to_fit(model, feed, steps_per_epoch, last_step, watchers)


def test_embeddings_of_a_run_that_goes_on_are_its_own(run_of, setup_of, monkeypatch):
    """Embeddings are initialized at step 0 only."""
    begun = "--embedding_initialization=cooccurrence"
    monkeypatch.setattr(fit, "fit", one_step)
    run_of(begun, "--max_steps=1").train()
    [path] = checkpoint.checkpoints(run_of().folder.checkpoints)
    saved = checkpoint.weights_of(path)["weights/embedding/table"]
    np.testing.assert_array_equal(table_of(setup_of(begun, "--max_steps=2").model), saved)


def test_embeddings_of_another_run_are_kept(setup_of, run_of, monkeypatch, tmp_path):
    monkeypatch.setattr(fit, "fit", one_step)
    run_of("--max_steps=1", f"--model_dir={tmp_path / 'other'}").train()
    arguments = (f"--init_from={tmp_path / 'other'}", "--embedding_initialization=cooccurrence")
    [path] = checkpoint.checkpoints(RunFolder(tmp_path / "other").checkpoints)
    theirs = checkpoint.weights_of(path)["weights/embedding/table"]
    np.testing.assert_array_equal(table_of(setup_of(*arguments).model), theirs)


@pytest.mark.parametrize(
    ("sides", "arguments"), [(1, ()), (2, ("--vocabularies=separate", "--tie_embeddings=decoder"))]
)
def test_embeddings_of_too_many_pieces_are_refused(run_of, tmp_path, monkeypatch, sides, arguments):
    """The number of pieces in the vocabulary counts, not the limit of the flag."""
    start = ("--embedding_initialization=cooccurrence", "--vocabulary_size=20000", *arguments)
    task = run_of(*start).task
    folder = RunFolder(tmp_path / "pieces")
    task.write_files(folder)
    task.read_files(folder)
    assert task.vocabulary.size < 1000
    monkeypatch.setattr(texts, "MOST_PIECES", sides * task.vocabulary.size - 1)
    with pytest.raises(ValueError, match=r"^--embedding_initialization=cooccurrence counts pairs "):
        task.read_files(folder)


def test_several_hosts_compute_no_embeddings():
    arguments = ("--embedding_initialization=cooccurrence", "--distribution=multi_worker")
    with pytest.raises(ValueError, match=r"machines may round differently\. Received: --distrib"):
        Translation(values_of_task(Translation, *TINY, *arguments))


EXCLUDED = [
    *(
        (f"--{flag}=0.1 --static_shapes", rf"^--{flag} gives sentences of any length, and ")
        for flag in SEGMENTATIONS
    ),
    ("--bpe_dropout=0.1 --subword_regularization=0.2", "^--bpe_dropout and --subword_regular"),
    ("--bpe_dropout=0.1 --vocabulary_model=word_piece", r"^--bpe_dropout needs .*=bpe\. .*: word_"),
    ("--subword_regularization=0.2", "^--subword_regularization needs --vocabulary_model=unigram"),
    ("--r_drop=5 --scheduled_sampling=0.1", "^--r_drop and --scheduled_sampling exclude "),
    ("--vocabularies=separate --tie_embeddings=three_way", r"Received: tie_embeddings=three_way"),
    ("--keep_best=bleu", r"^--keep_best must be one of cross_entropy\. Received: bleu\. .*--valid"),
    ("--weight_decay=0.1", r"^`weight_decay` needs adamw, .* Pass --optimizer=adamw\.$"),
    ("--optimizer=adamw", r"^`weight_decay` must be positive with adamw"),
    ("--schedule=cosine --max_steps=5", r"^--schedule=cosine needs --max_steps above --warmup_ste"),
]


@pytest.mark.parametrize(("flags", "message"), EXCLUDED)
def test_flags_that_do_not_fit_each_other_are_refused_at_once(run_of, flags, message):
    with pytest.raises(ValueError, match=message):
        run_of(*flags.split())


def test_bpe_dropout_reaches_the_training_side_alone(run_of, prepared):
    run = prepared("--bpe_dropout=0.25", "--seed=7")
    segmentations = run.task.examples("train").variations
    assert list(segmentations) == ["source", "target"]
    segmentation = segmentations["source"]
    assert segmentations["target"] is segmentation
    assert float(segmentation._threshold) == 0.25 * 2**64
    assert segmentation.seed == 7
    assert run.task.examples("valid").variations == {}
    assert run_of().task._variations(run.task.vocabulary) == {}


def test_subword_regularization_reaches_the_training_side_alone(prepared):
    unigram = ("--vocabulary_model=unigram", "--vocabulary_size=285")
    run = prepared("--subword_regularization=0.3", "--seed=7", *unigram)
    segmentation = run.task.examples("train").variations["target"]
    assert (segmentation.alpha, segmentation.seed) == (0.3, 7)
    assert run.task.examples("valid").variations == {}


def pretend_to_fit(model, feed, steps_per_epoch, last_step, watchers):
    """One step that changes nothing."""
    [folder] = [watcher.folder for watcher in watchers if type(watcher).__name__ == "Checkpointing"]
    model.optimizer.iterations.assign(1)
    checkpoint.save(checkpoint.path_of(folder, 1), model, {"step": 1, "seconds": 0.0})


def test_the_printed_and_the_kept_score_are_of_the_flags(run_of, tmp_path, monkeypatch, capsys):
    file = tmp_path / "some.flags"
    file.write_text("--beam_size=3\n--length_penalty=0.3\n--max_length=+7\n--min_length=1\n")
    run = run_of(f"--flagfile={file}", "--no_repeat_ngram_size=2", "--release")
    rules = {"max_length": "+7", "min_length": "1", "no_repeat_ngram_size": 2}
    expected = DecodingOptions(beam_size=3, length_penalty=0.3, **rules)
    test = run.task.corpus.test

    class Perfect:
        """Translates perfectly with the search of the flags, and with no other."""

        def __init__(self, module):
            self.is_right = module.options == expected

        def translate(self, sources):
            assert sources == test.sources
            return test.targets if self.is_right else test.sources

    monkeypatch.setattr("keras_transformer.tasks.translation.task.Translator", Perfect)
    monkeypatch.setattr(fit, "fit", pretend_to_fit)
    monkeypatch.setattr(run.task, "write", lambda *how: tmp_path)
    run.train()
    scores = json.loads(run.folder.evaluation.read_text(encoding="utf-8"))
    assert (scores["split"], scores["beam_size"], scores["bleu"]) == ("test", 3, 100)
    assert "step 1, beam 3: BLEU 100.0  chrF 100.0" in capsys.readouterr().out
    # The control: another search is scored otherwise.
    expected = run_of().task.decoding
    assert expected == DecodingOptions()
    assert run.task.score(new_module(run.task, run.folder)).numbers["bleu"] < 50


def test_each_language_can_have_a_vocabulary_of_its_own(run_of, prepared, monkeypatch):
    run = prepared("--vocabularies=separate", "--tie_embeddings=none", "--bpe_dropout=0.1")
    both = run.task.vocabulary
    assert vocabularies.load(run.folder.path).fingerprint == both.fingerprint
    assert run.task.description()["vocabulary"] == {"fingerprint": both.fingerprint}
    assert run.task.pieces == {"source": both.source.pieces, "target": both.target.pieces}
    assert both.kind == "separate"
    variations = run.task.examples("train").variations
    assert variations["source"] is not variations["target"]
    # A vocabulary on the disk overrides the flags. These two languages have the same words: equal
    # pieces in equal order may share a table.
    assert both.shares_ids
    run_of().task.read_files(run.folder)
    monkeypatch.setattr(vocabularies.SeparateVocabularies, "shares_ids", False)
    with pytest.raises(ValueError, match=r"^vocabularies that are separate need --tie_embeddings="):
        run_of().task.read_files(run.folder)


def test_the_vocabulary_of_another_run_is_taken(prepared, tmp_path):
    first_run = tmp_path / "other"
    prepared("--vocabulary_size=295", f"--model_dir={first_run}")
    run = prepared(f"--vocabulary_from={first_run}")
    assert run.task.vocabulary.fingerprint == vocabularies.load(first_run).fingerprint
    expected = run.task.vocabulary.fingerprint
    assert choices.vocabulary_with(first_run, ["e"], None).fingerprint == expected
    with pytest.raises(ValueError, match=r"protects other spans than these flags do\. Pass"):
        choices.vocabulary_with(first_run, [], ProtectedSpans(protect=("urls",)))
    with pytest.raises(ValueError, match=r"lacks the tags <2de> of this corpus\. Pass --voc"):
        choices.vocabulary_with(first_run, ["<2de>"], None)


def test_a_format_without_the_search_of_the_flags_is_refused_before_training(run_of):
    pytest.importorskip("tf2onnx", reason="install the extra [onnx]")
    run = run_of("--release", "--export_formats=onnx", "--coverage_penalty=0.2", "--max_steps=1")
    with pytest.raises(ValueError, match=r"searched without it: coverage_penalty=0\.2"):
        run.train()
    assert not run.folder.is_started


def test_an_operation_that_litert_lacks_is_refused_before_training(run_of):
    pytest.importorskip("ai_edge_litert", reason="install the extra [litert]")
    run = run_of("--release", "--export_formats=litert", "--activation=gelu", "--max_steps=1")
    with pytest.raises(ValueError, match="litert has no Erf"):
        run.train()
    assert not run.folder.is_started


def test_pairs_over_the_longest_length_are_dropped_or_nothing_is_left(prepared, capsys):
    run = prepared("--max_train_length=8")
    train, valid = (len(run.task.examples(split)) for split in ("train", "valid"))
    assert 0 < train < 4000
    run.task.introduce()
    summary = f"{train:,} pairs to train, {valid} to validate, 200 to test\ndropped: "
    assert f"{summary}{4200 - train - valid:,} over 8 tokens" in capsys.readouterr().out
    run = prepared("--max_train_length=2", f"--model_dir={run.folder.path.parent / 'other'}")
    words = r"^no pair is left to train or validate on: .*--max_train_length=2 tokens"
    with pytest.raises(ValueError, match=words):
        run.task.examples("train")


@pytest.mark.parametrize(
    "flag",
    [
        *("--report", "--distribution=mirrored", "--accumulate=2", "--r_drop=5"),
        *("--scheduled_sampling=0.1", "--augment=typos", "--bpe_dropout=0.1"),
        *("--subword_regularization=0.2", "--protect=urls --glossary_rate=0.1"),
    ],
)
def test_flags_that_need_tensorflow_are_refused_on_another_backend(run_of, flag, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    name = flag.split("--")[-1].partition("=")[0]
    with pytest.raises(ValueError, match=rf"^--{name} is for TensorFlow.* KERAS_BACKEND=jax\."):
        run_of(*flag.split())


def test_another_backend_takes_fewer_shapes(prepared, monkeypatch):
    shapes = []
    for backend in ("tensorflow", "jax"):
        monkeypatch.setattr(keras.backend, "backend", lambda name=backend: name)
        run = prepared()
        shapes.append(len(run._batches().buckets.batch_sizes))
    assert shapes[1] < shapes[0]


@pytest.fixture
def chinese(run_of, tmp_path):
    """A function of flags: a prepared run into Chinese, resumed where a description is given."""
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.en").write_text("please open the big door\nwe turn the lamp off\n")
        (tmp_path / f"{split}.zh").write_text("请打开大的门。\n我们把灯关掉。\n", encoding="utf-8")

    def run(*flags, before=None):
        of_text = ("--corpus=text_files", f"--data_dir={tmp_path}", "--source_language=en")
        prepared_run = run_of(*of_text, "--target_language=zh", "--vocabulary_size=400", *flags)
        if before is not None:
            prepared_run.folder.checkpoints.mkdir(exist_ok=True)
            checkpoint.path_of(prepared_run.folder.checkpoints, 1).touch()
            prepared_run.folder.description.write_text(json.dumps(before))
        prepared_run._prepare_folder()
        return prepared_run

    return run


def scale(run):
    """The tokenizer of BLEU that a run records, and BLEU of its references by it."""
    references = run.task.corpus.valid.targets
    written = run.folder.read_description()["evaluation"]["tokenize"]
    return written, run.task.validation_quality(references)


def test_a_run_into_a_language_without_spaces_counts_characters_and_goes_on_so(chinese, capsys):
    run = chinese()
    assert scale(run) == ("zh", 100)
    description = run.folder.read_description()
    assert scale(chinese(before=description)) == ("zh", 100)
    assert scale(chinese("--tokenize=zh", before=description)) == ("zh", 100)
    message = r"^--tokenize must be zh, .*Received: 13a\. Leave it out; "
    with pytest.raises(ValueError, match=message):
        chinese("--tokenize=13a", before=description)
    assert "--keep_best" not in capsys.readouterr().out


def test_a_run_of_0_7_keeps_its_scale(chinese, capsys):
    description = chinese().folder.read_description()
    del description["evaluation"]
    assert scale(chinese(before=description)) == ("13a", 0)
    report = "BLEU is counted with the tokenizer 13a as before, so that --keep_best compares"
    assert report in capsys.readouterr().out
    # A flag overrides it.
    assert scale(chinese("--tokenize=char", before=description)) == ("char", 100)


def test_a_resumed_run_reports_that_its_text_was_edited(chinese, tmp_path, capsys):
    description = chinese().folder.read_description()
    chinese(before=description)
    assert "changed" not in capsys.readouterr().out
    (tmp_path / "train.en").write_text("please open the big door\nwe turn the lamp on\n")
    chinese(before=description)
    pairs = "2 pairs with checksum [0-9a-f]{8}"
    report = re.search(
        f"changed: training_text was ({pairs}), now ({pairs})\n", capsys.readouterr().out
    )
    assert report[1] != report[2]


def test_the_size_of_a_vocabulary_is_that_of_its_text_wherever_it_is_said(chinese):
    run = chinese()
    size = run.task.vocabulary.size
    assert 261 < size < 400
    description = run.folder.read_description()
    assert description["hyperparameters"]["vocabulary_size"] == size
    assert description["training"]["vocabulary_size"] == 400
    assert new_model(run.task).hyperparameters.vocabulary_size == size
    # To resume, the flag must be the same, not the size that came of it.
    chinese(before=description)
    with pytest.raises(ValueError, match=r"vocabulary_size was 400, now 300\. Name another"):
        chinese("--vocabulary_size=300", before=description)
    # A run of 0.7 had as many pieces as the flag said, and recorded the number once.
    del description["training"]["vocabulary_size"]
    chinese(f"--vocabulary_size={size}", before=description)
    with pytest.raises(ValueError, match=rf"vocabulary_size was {size}, now 300\. Name another"):
        chinese("--vocabulary_size=300", before=description)


def test_validation_translates_greedily_by_the_rules_of_the_flags(prepared, monkeypatch):
    searches = []
    rules = {"min_length": "1", "max_length": "80", "no_repeat_ngram_size": 3}
    flags = [f"--{name}={value}" for name, value in rules.items()]
    run = prepared("--validation_sentences=3", "--beam_size=7", "--length_penalty=0.9", *flags)
    model = new_model(run.task)
    monkeypatch.setattr(run.task, "module_class", lambda *arguments: searches.append(arguments[2]))
    translator = "keras_transformer.tasks.translation.task.Translator"
    monkeypatch.setattr(translator, lambda module: module)
    run.task.validation(model, None)
    assert searches == [DecodingOptions(beam_size=1, **rules)]


def oracle(model, batches):
    """Cross-entropy and accuracy per target token, in float64."""
    losses = 0.0
    right = 0
    tokens = 0
    for inputs, labels, weights in batches:
        logits = np.asarray(model(inputs))
        labels = np.asarray(labels)
        real = np.asarray(weights) > 0
        assert (real == (labels != 0)).all()
        losses += paper.label_smoothed_cross_entropy(labels, logits, 0.0)[real].sum()
        right += (logits.argmax(-1) == labels)[real].sum()
        tokens += real.sum()
    return losses / tokens, right / tokens


def test_validation_measures_cross_entropy_perplexity_accuracy_and_bleu(prepared):
    """Without label smoothing: the oracle has none."""
    run = prepared("--validation_sentences=3", "--label_smoothing=0.3")
    model = new_model(run.task)
    measure = run.task.validation(model, lambda: run._validation_batches)
    numbers = measure()
    assert list(numbers) == ["cross_entropy", "perplexity", "accuracy", "bleu"]
    cross_entropy, accuracy = oracle(model, run._validation_batches)
    assert numbers["cross_entropy"] == pytest.approx(cross_entropy, rel=1e-5)
    assert numbers["perplexity"] == math.exp(numbers["cross_entropy"])
    assert numbers["perplexity"] == pytest.approx(math.exp(cross_entropy), rel=1e-4)
    assert numbers["accuracy"] == pytest.approx(accuracy, abs=1e-6)
    assert 0 <= numbers["bleu"] <= 100
    # Batches are made once a run, and measured again after each epoch.
    assert run._validation_batches is run._validation_batches
    assert measure() == numbers


def test_a_run_may_go_on_with_another_search_and_remembers_it(prepared):
    run = prepared("--beam_size=3")
    saved = {"progress": np.array("{}")}
    checkpoint.write_archive(checkpoint.path_of(run.folder.checkpoints, 1), saved)
    run = prepared("--beam_size=7", "--max_length=+9")
    decoding = run.folder.read_description()["decoding"]
    assert (decoding["beam_size"], decoding["max_length"]) == (7, "+9")
    with pytest.raises(ValueError, match="d_model was 8, now 16"):
        prepared("--d_model=16")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"beam_size": 3, "length_penalty": 0.2, "seed": 7}, {"beam_size": 3}),
        ({"beam_size": None, "length_penalty": 0.2, "seed": 7}, {"length_penalty": 0.2}),
        ({"beam_size": None, "samples": 2, "seed": 7}, {"samples": 2, "seed": 7}),
        ({"samples": 0, "seed": 7, "max_length": "80", "unknown": 1}, {"max_length": "80"}),
    ],
)
def test_flags_become_decoding_options(values, expected):
    options = decoding_options(values, {})
    for name, value in expected.items():
        assert getattr(options, name) == value
    assert options.seed == expected.get("seed")


@pytest.fixture
def folder(tmp_path):
    """A run's folder with four checkpoints, whose one weight is the step."""
    folder = RunFolder(tmp_path)
    for step in (10, 20, 30, 40):
        checkpoint.write_archive(
            checkpoint.path_of(folder.checkpoints, step),
            {"weights/a": np.full(2, step, np.float32), "progress": np.array("{}")},
        )
    progress = np.array('{"step": 10, "val_bleu": 2.0}')
    best = {"weights/a": np.full(2, 7, np.float32), "progress": progress}
    checkpoint.write_archive(folder.best, best)
    return folder


@pytest.mark.parametrize(
    ("arguments", "words", "weight"),
    [
        ({"last": 1}, "checkpoint of step 40", 40),
        ({"last": 2}, "mean of the checkpoints of steps 30, 40", 35),
        ({"last": 3}, "mean of the checkpoints of steps 20, 30, 40", 30),
        ({"last": 9}, "mean of the checkpoints of steps 10, 20, 30, 40", 25),
        ({"last": 2, "best": "bleu"}, "best epoch", 7),
        ({"last": 2, "averages": {"weights/a": np.float32([5, 5])}}, "moving average of the we", 5),
        ({"last": 2, "best": "bleu", "averages": {"weights/a": np.zeros(2)}}, "best epoch", 7),
    ],
)
def test_the_weights_that_were_asked_for_are_chosen(folder, arguments, words, weight):
    assert choose_weights(folder, **arguments).startswith(words)
    assert checkpoint.weights_of(folder.averaged)["weights/a"].tolist() == [weight, weight]


def test_a_best_epoch_by_another_measure_is_refused(folder):
    with pytest.raises(ValueError, match=r"by --keep_best=cross_entropy, and no epoch"):
        choose_weights(folder, 2, "cross_entropy")
    folder.best.unlink()
    with pytest.raises(ValueError, match=r"by --keep_best=bleu, and no epoch"):
        choose_weights(folder, 2, "bleu")
    assert not folder.averaged.exists()


def test_checkpoints_that_only_serve_to_resume_are_not_averaged(folder):
    newest = checkpoint.path_of(folder.checkpoints, 45, averaged=False)
    checkpoint.path_of(folder.checkpoints, 40).rename(newest)
    assert choose_weights(folder, 2) == (
        "mean of the checkpoints of steps 20, 30, without what was learned up to step 45"
    )
    for old in checkpoint.checkpoints_to_average(folder.checkpoints):
        old.unlink()
    assert choose_weights(folder, 2) == "checkpoint of step 45"


def test_the_command_averages_the_last_checkpoints(folder, capsys):
    from keras_transformer import average

    (folder.path / "model.json").write_text('{"task": "any"}', encoding="utf-8")
    arguments = types.SimpleNamespace(model_dir=str(folder.path), average_checkpoints=99)
    average.main(arguments)
    assert capsys.readouterr().out.endswith(
        "steps 10, 20, 30, 40 (--average_checkpoints=99: there are no more)\n"
    )
    folder.evaluation.write_text("{}")
    average.main(types.SimpleNamespace(model_dir=str(folder.path), average_checkpoints=2))
    assert checkpoint.weights_of(folder.averaged)["weights/a"].tolist() == [35, 35]
    expected = f"{folder.averaged}: mean of the checkpoints of steps 30, 40\n"
    removed = f"{folder.evaluation} is removed: its scores were of other weights\n"
    assert capsys.readouterr().out == expected + removed


FINAL = [
    (("--average_checkpoints=2",), "mean of the checkpoints of steps 2, 3"),
    (("--ema=0.5",), "moving average of the weights"),
    (("--keep_best=cross_entropy",), "best epoch"),
]


@pytest.mark.parametrize(("flags", "chosen"), FINAL, ids=[words for _, words in FINAL])
def test_the_flags_choose_the_weights_of_a_finished_run(run_of, capsys, monkeypatch, flags, chosen):
    run = run_of(*flags)

    def pretend(model, feed, steps_per_epoch, last_step, watchers):
        """Three epochs: checkpoints, a best epoch, and averages."""
        for step in (1, 2, 3):
            model.optimizer.iterations.assign(step)
            checkpoint.save(checkpoint.path_of(run.folder.checkpoints, step), model, {"step": step})
        for watcher in watchers:
            if isinstance(watcher, BestSoFar):
                watcher.set_model(model)
                watcher.on_epoch_end(0, {"val_cross_entropy": 1.0})

    monkeypatch.setattr(fit, "fit", pretend)
    run.train()
    assert capsys.readouterr().out.splitlines()[-1] == f"{chosen}: {run.folder.averaged}"


def test_the_folder_of_versions_is_named_after_the_run(tmp_path):
    folder = RunFolder(tmp_path / "some_run")
    assert str(folder.export_dir(None)) == "saved_models/some_run"
    assert str(folder.export_dir("elsewhere")) == "elsewhere"


def test_a_run_says_the_languages_and_the_members_of_its_mixture(prepared, tmp_path, monkeypatch):
    member = {"corpus": "reverse", "source_language": "words", "target_language": "x"}
    file = tmp_path / "mixture.json"
    file.write_text(json.dumps({"corpora": [member]}), encoding="utf-8")
    flags = ("--corpus=mixture", f"--mixture={file}", "--target_language=x")
    run = prepared(*flags)
    description = run.folder.read_description()
    assert description["mixture"] == {"members": [member]}
    corpus = description["corpus"]
    assert (corpus["source_language"], corpus["target_language"]) == ("words", "x")
    # As an earlier version wrote it: the flags' languages, and no members.
    old = {**description, "corpus": {**corpus, "source_language": "en", "target_language": "de"}}
    del old["mixture"]
    run.folder.description.write_text(json.dumps(old), encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "is_started", True)
        prepared(*flags)
    assert corpora.load(**old["corpus"]).target_language == "x"
    run.folder.description.write_text(json.dumps(description), encoding="utf-8")
    file.write_text(json.dumps({"corpora": [{**member, "seed": 7}]}), encoding="utf-8")
    monkeypatch.setattr(RunFolder, "is_started", True)
    with pytest.raises(ValueError, match=r"holds another run: members was .*'seed': 7"):
        prepared(*flags)


def test_the_names_of_the_tasks_are_those_that_their_runs_say():
    for name, registered in TASKS.items():
        task = task_class(name)
        assert (task.name, task.options) == (name, registered.options)
        assert task.export_options == registered.export_options


def test_the_flags_name_all_tasks_and_corpora():
    for flag, names in (("task", TASKS), ("corpus", corpora.CORPORA)):
        assert sorted(EVERY_FLAG[flag].parser.option.setting.choices) == sorted(names)


class Other(Translation):
    """A task of another program, which takes the place of ours."""

    name = "translation"
    options = (Seed,)


def test_a_task_has_the_options_of_its_name_or_its_own():
    assert Other.options == (Seed,)
    assert Other.export_options == TASKS["translation"].export_options
    assert Task.options == type("Unknown", (Task,), {"name": "x"}).options == ()
    assert type("Inherited", (Parsing,), {}).options == TASKS["parsing"].options


def test_the_text_is_found_again_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ("--corpus=text_files", "--data_dir=here", "--train_prefix=a", "--test_prefix=c")
    settings = corpus_settings(values_of_task(Translation, *names, "--seed=4"))
    expected = {"name": "text_files", "source_language": "en", "target_language": "de", "seed": 4}
    expected |= {"data_dir": str(tmp_path / "here"), "splits": ["train", "validation", "test"]}
    expected |= {"prefixes": ["a", "valid", "c"], **dict.fromkeys(("mixture", "tree_leaves"))}
    assert settings == {**expected, "dataset": None}
    bucket = values_of_task(Translation, "--corpus=tfds", "--dataset=d/e", "--data_dir=gs://b/f")
    assert corpus_settings(bucket)["data_dir"] == "gs://b/f"
    at_home = corpus_settings({**bucket, "data_dir": "~/text"})["data_dir"]
    assert at_home == str(pathlib.Path.home() / "text")
    assert corpus_settings(bucket)["dataset"] == "d/e"
