"""From text to a translator that can be served: `python -m keras_transformer.train
--flagfile=tiny.flags`.

Learns the vocabulary, trains (Vaswani et al. 2017, section 5), averages checkpoints, scores the
test split and exports (section 6.1). The same command again goes on where it was interrupted.
"""

import dataclasses
import math

import keras

from keras_transformer import flags
from keras_transformer.decoding import DecodingOptions
from keras_transformer.models import Hyperparameters, Transformer
from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.starting_point import starting_point
from keras_transformer.tasks.release import choose_weights, release
from keras_transformer.tasks.validation import validation
from keras_transformer.training import callbacks, fit, initialization, schedule
from keras_transformer.training import replicas as strategy
from keras_transformer.training.early_stopping import BestSoFar
from keras_transformer.training.mixed_precision import dtype_policy
from keras_transformer.training.optimizer import averaged_weights, optimizer
from keras_transformer.training.progress import ProgressBar
from pipelines import batching, bucketing, corpora
from pipelines.record_files import Records
from pipelines.vocabulary import Vocabulary, learn

GROUPS = (
    *(
        "corpus",
        "seed",
        "vocabulary",
        "model",
        "batch_tokens",
        "batches",
        "optimizer",
        "training",
        "averaging",
        "model_dir",
    ),
    *("search", "export"),
)
# Section 5.1.
BATCH_TOKENS = 25000


def main(FLAGS):
    replicas = strategy.make_strategy(FLAGS.distribution, FLAGS.tpu)
    with strategy.telling_of_lost_hosts(replicas):
        make_translator(FLAGS, replicas)


def make_translator(FLAGS, replicas):
    """All that the command does, on the replicas of a strategy."""
    # Before the tokenizer is made: TensorFlow forgets the resources of ops when it is seeded.
    keras.utils.set_random_seed(FLAGS.seed)
    batch_tokens = FLAGS.batch_tokens or BATCH_TOKENS
    hyperparameters = Hyperparameters(
        **{field.name: getattr(FLAGS, field.name) for field in dataclasses.fields(Hyperparameters)}
    )
    folder = RunFolder(flags.model_dir(FLAGS))
    settings = flags.corpus_settings(FLAGS)
    corpus = corpora.load(**settings, cache_dir=FLAGS.cache_dir)
    vocabulary = _vocabulary(folder, corpus, FLAGS.vocabulary_size, replicas)
    if isinstance(corpus.train, Records):
        hyperparameters = dataclasses.replace(hyperparameters, vocabulary_size=vocabulary.size)
    description = {
        "hyperparameters": hyperparameters.as_dict(),
        "corpus": settings,
        "vocabulary": {"fingerprint": vocabulary.fingerprint},
        "training": {
            "batch_tokens": batch_tokens,
            "max_length": FLAGS.max_train_length,
            "seed": FLAGS.seed,
        },
    }
    if strategy.is_chief(replicas):
        folder.describe(description)
    pairs = batching.tokenize_pairs(corpus.train, vocabulary, FLAGS.max_train_length)
    valid = batching.tokenize_pairs(corpus.valid, vocabulary, FLAGS.max_train_length)
    if not len(pairs) or not len(valid):
        raise ValueError(
            "no pair is left to train or validate on: all are over "
            f"--max_train_length={FLAGS.max_train_length} tokens. Raise it."
        )
    dropped = {**corpus.dropped, f"over {FLAGS.max_train_length} tokens": pairs.too_long}
    print(f"{corpus.name} {corpus.source_language}-{corpus.target_language}: ", end="")
    print(
        f"{len(pairs):,} pairs to train, {len(corpus.valid):,} to validate, {len(corpus.test):,} "
        "to test"
    )
    print(
        "dropped: "
        f"{', '.join(f'{count:,} {reason}' for reason, count in dropped.items() if count) or 'none'}"
    )

    inference = Transformer(hyperparameters, dtype="float32")
    few = slice(FLAGS.validation_sentences)
    measure = validation(
        inference,
        vocabulary,
        lambda: batching.evaluation_batches(valid.examples(), max(batch_tokens, FLAGS.max_train_length)),
        corpus.valid.sources[few],
        corpus.valid.targets[few],
    )
    data = batching.training_batches(
        pairs.examples(),
        batch_tokens,
        FLAGS.seed,
        corpus.weights,
        *(
            (replicas.num_replicas_in_sync, bucketing.MOST_PADDING_STATIC)
            if FLAGS.static_shapes
            else ()
        ),
    )
    model = train(FLAGS, hyperparameters, folder, vocabulary, data, measure, replicas)
    if model is None or not strategy.is_chief(replicas):
        return
    averages = averaged_weights(model) if FLAGS.ema else None
    chosen = choose_weights(
        folder, FLAGS.average_checkpoints, best=bool(FLAGS.keep_best), averages=averages
    )
    if keras.backend.backend() != "tensorflow":
        print(
            f"{chosen}: {folder.averaged}. Score and export it with TensorFlow: run the same "
            "command without KERAS_BACKEND."
        )
        return
    if not FLAGS.release:
        print(f"{chosen}: {folder.averaged}")
        return
    options = DecodingOptions(**flags.decoding_options(FLAGS))
    release(
        folder,
        inference,
        vocabulary,
        options,
        corpus.test,
        chosen,
        flags.export_dir(FLAGS, folder.path),
        description,
    )


def _vocabulary(folder, corpus, size, replicas):
    """That of the run or of the records; else learned, by one host, from the training side."""
    prepared = getattr(corpus.train, "vocabulary", None)
    if strategy.is_chief(replicas) and not folder.is_started:
        vocabulary = prepared or learn(
            corpus.train.sources + corpus.train.targets, size, corpus.tags
        )
        folder.path.mkdir(parents=True, exist_ok=True)
        vocabulary.save(folder.vocabulary)
    strategy.wait_for_all(replicas)
    vocabulary = Vocabulary.load(folder.vocabulary)
    if prepared and prepared.fingerprint != vocabulary.fingerprint:
        raise ValueError(
            f"{folder.path} was trained with vocabulary {vocabulary.fingerprint}, the records "
            f"are of {prepared.fingerprint}. Name another "
            "--model_dir, or prepare the records with --vocabulary=" + str(folder.vocabulary) + "."
        )
    return vocabulary


def train(FLAGS, hyperparameters, folder, vocabulary, data, measure, replicas):
    """Train from the newest checkpoint, from --init_from or from nothing, to the first limit that
    is met.

    Returns:
        The model; None if the machine is about to be taken away.
    """
    policy = dtype_policy(FLAGS.mixed_precision)
    with replicas.scope():
        model = Transformer(hyperparameters, dtype=policy)
        fit.compile_model(model, _optimizer(FLAGS), hyperparameters.label_smoothing)
    step, seen, stopwatch = fit.resume(model, folder.checkpoints)
    if FLAGS.init_from and not step:
        weights, old = starting_point(FLAGS.init_from)
        report = initialization.initialize(model, weights, vocabulary.pieces, old.pieces)
        print(
            f"from {FLAGS.init_from}: {report.copied_rows:,} pieces keep their embeddings, "
            f"{report.new_rows:,} are new"
        )
    batches_per_step = replicas.num_replicas_in_sync * FLAGS.accumulate
    steps_per_epoch = max(1, round(data.batches_per_epoch / batches_per_step))
    last_step = min(FLAGS.max_steps, (FLAGS.max_epochs or math.inf) * steps_per_epoch)
    print(
        f"{model.count_params():,} parameters, {policy}; {data.describe()}; {batches_per_step:,} "
        "batches a step"
    )
    print(f"{f'going on from step {step}' if step else 'starting'} in {folder.path}", flush=True)

    def batches_before(later_step):
        # The rest of a group that other replicas began is seen again.
        return (
            seen // replicas.num_replicas_in_sync * replicas.num_replicas_in_sync
            + (later_step - step) * batches_per_step
        )

    data_from = strategy.attach(
        model,
        replicas,
        data,
        batches_before,
        FLAGS.accumulate,
        FLAGS.static_shapes,
        FLAGS.jit_compile,
    )
    limit = callbacks.StopAtLimit(
        stopwatch, math.inf if FLAGS.max_minutes is None else FLAGS.max_minutes, last_step
    )
    bar = ProgressBar(last_step, stopwatch, limit.minutes)
    saving = callbacks.Checkpointing(
        folder.checkpoints,
        stopwatch,
        FLAGS.keep_checkpoints,
        FLAGS.checkpoint_minutes,
        batches_before,
        bar.report,
    )
    # A host that writes nothing waits for the one that does: were it gone, they would be lost to
    # each other.
    watchers = [
        callbacks.StopOnDivergence(),
        limit,
        callbacks.StopOnSignal(at_once=strategy.is_chief(replicas)),
    ]
    best = None
    if FLAGS.keep_best or FLAGS.patience:
        best = BestSoFar(
            folder.history,
            folder.best,
            FLAGS.keep_best or "cross_entropy",
            step,
            FLAGS.patience,
            report=bar.report,
        )
    if strategy.is_chief(replicas):
        watchers[2:2] = [saving]
        watchers += [callbacks.Validation(measure, folder.history, bar.report)]
        watchers += [
            keras.callbacks.TensorBoard(folder.logs, write_graph=False, update_freq=100),
            bar,
        ]
        watchers += [best] if best else []
    if limit.is_out_of_time or (best and best.is_over):
        return model
    try:
        fit.fit(model, data_from, steps_per_epoch, last_step, watchers)
    except callbacks.Preempted:
        bar.on_train_end()
        saved = (
            "nothing could be saved."
            if saving.saved_step is None
            else f"step {saving.saved_step} is saved; the same command goes on."
        )
        print(f"SIGTERM: {saved if saving in watchers else 'the first host saves the run.'}")
        return None
    return model


def _optimizer(FLAGS):
    peak = (
        FLAGS.learning_rate
        or FLAGS.learning_rate_scale * (FLAGS.d_model * FLAGS.warmup_steps) ** -0.5
    )
    rate = {
        "transformer": lambda: schedule.TransformerSchedule(
            FLAGS.d_model, FLAGS.warmup_steps, FLAGS.learning_rate_scale
        ),
        "cosine": lambda: schedule.CosineSchedule(peak, FLAGS.warmup_steps, FLAGS.max_steps),
        "constant": lambda: schedule.ConstantSchedule(peak, FLAGS.warmup_steps),
    }[FLAGS.schedule]()
    return optimizer(rate, FLAGS.optimizer, FLAGS.weight_decay, FLAGS.clip_norm, FLAGS.ema)


if __name__ == "__main__":
    flags.run(main, GROUPS)
