"""From text to a translator that can be served: `python -m keras_transformer.train --flagfile=tiny.flags`.

Learns the vocabulary, trains (Vaswani et al. 2017, section 5), averages checkpoints, scores the test split and exports (section 6.1).
The same command again goes on where it was interrupted.
"""

import dataclasses
import math

import keras

from keras_transformer import flags
from keras_transformer.evaluation import bleu
from keras_transformer.models import Hyperparameters, Transformer
from keras_transformer.serving.export import export
from keras_transformer.serving.model_folder import ModelFolder, write_json
from keras_transformer.serving.translation_module import TranslationModule
from keras_transformer.serving.translator import Translator, search
from keras_transformer.training import averaging, callbacks, checkpoint, fit
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.metrics import TokenAccuracy, TokenCrossEntropy
from keras_transformer.training.precision import dtype_policy
from keras_transformer.training.progress import ProgressBar
from keras_transformer.training.schedule import TransformerSchedule
from pipelines import batching, corpora
from pipelines.vocabulary import Vocabulary, learn

GROUPS = ("corpus", "model", "training", "averaging", "model_dir", "search", "export")


def main(FLAGS):
    # Before the tokenizer is made: TensorFlow forgets the resources of ops when it is seeded.
    keras.utils.set_random_seed(FLAGS.seed)
    hyperparameters = Hyperparameters(**{field.name: getattr(FLAGS, field.name) for field in dataclasses.fields(Hyperparameters)})
    folder = ModelFolder(flags.model_dir(FLAGS))
    settings = flags.corpus_settings(FLAGS)
    corpus = corpora.load(**settings, cache_dir=FLAGS.cache_dir)
    vocabulary = _vocabulary(folder, corpus, hyperparameters.vocabulary_size)
    description = {
        "hyperparameters": hyperparameters.as_dict(),
        "corpus": settings,
        "vocabulary": {"fingerprint": vocabulary.fingerprint},
        "training": {name: getattr(FLAGS, name) for name in ("batch_tokens", "max_length", "seed")},
    }
    folder.describe(description)
    pairs, valid = (batching.tokenize_pairs(text, vocabulary, FLAGS.max_length) for text in (corpus.train, corpus.valid))
    if not len(pairs) or not len(valid):
        raise ValueError(f"no pair is left to train or validate on: all are over --max_length={FLAGS.max_length} tokens. Raise it.")
    dropped = {**corpus.dropped, f"over {FLAGS.max_length} tokens": pairs.too_long}
    print(f"{corpus.name} {corpus.source_language}-{corpus.target_language}: ", end="")
    print(f"{len(pairs):,} pairs to train, {len(corpus.valid):,} to validate, {len(corpus.test):,} to test")
    print(f"dropped: {', '.join(f'{count:,} {reason}' for reason, count in dropped.items() if count) or 'none'}")

    inference = Transformer(hyperparameters, dtype="float32")
    train(FLAGS, hyperparameters, folder, pairs, _measure(inference, vocabulary, corpus.valid, valid, FLAGS))
    finish(FLAGS, inference, vocabulary, folder, corpus, description)


def _vocabulary(folder, corpus, size):
    if folder.is_started:
        return Vocabulary.load(folder.vocabulary)
    vocabulary = learn(corpus.train.sources + corpus.train.targets, size)
    folder.path.mkdir(parents=True, exist_ok=True)
    vocabulary.save(folder.vocabulary)
    return vocabulary


def _measure(inference, vocabulary, text, pairs, FLAGS):
    """What is measured after each epoch: cross-entropy, perplexity and accuracy of the validation pairs, BLEU of the first of them."""
    batches = batching.evaluation_batches(pairs, max(FLAGS.batch_tokens, FLAGS.max_length))
    inference.compile(loss=LabelSmoothedCrossEntropy(0.0), metrics=[TokenCrossEntropy(), TokenAccuracy()], jit_compile=False)
    greedy = Translator(TranslationModule(inference, vocabulary, search(1, 0.0)))
    sources, references = text.sources[: FLAGS.validation_sentences], text.targets[: FLAGS.validation_sentences]

    def measure(model):
        inference.set_weights(model.get_weights())
        result = inference.evaluate(batches, verbose=0, return_dict=True)
        result["perplexity"] = math.exp(result["cross_entropy"])
        numbers = {name: result[name] for name in ("cross_entropy", "perplexity", "accuracy")}
        return {**numbers, "bleu": bleu.score(greedy.translate(sources), references)["bleu"]} if references else numbers

    return measure


def train(FLAGS, hyperparameters, folder, pairs, measure):
    """Train from the newest checkpoint, or from nothing, to the first limit that is met."""
    policy = dtype_policy(FLAGS.mixed_precision)
    model = Transformer(hyperparameters, dtype=policy)
    schedule = TransformerSchedule(hyperparameters.d_model, FLAGS.warmup_steps, FLAGS.learning_rate_scale)
    fit.compile_model(model, schedule, hyperparameters.label_smoothing)
    step, stopwatch = fit.resume(model, folder.checkpoints)
    buckets = batching.training_batches(pairs, FLAGS.batch_tokens, FLAGS.seed)[1]
    last_step = min(FLAGS.max_steps, (FLAGS.max_epochs or math.inf) * buckets.steps_per_epoch)
    minutes = math.inf if FLAGS.max_minutes is None else FLAGS.max_minutes
    print(f"{model.count_params():,} parameters, {policy}; {buckets.describe()}")
    print(f"{f'going on from step {step}' if step else 'starting'} in {folder.path}", flush=True)

    bar = ProgressBar(last_step, stopwatch, minutes)
    watchers = [
        callbacks.Checkpointing(folder.checkpoints, stopwatch, FLAGS.keep_checkpoints, FLAGS.checkpoint_minutes),
        callbacks.Validation(measure, folder.history, bar.report),
        keras.callbacks.TensorBoard(folder.logs, write_graph=False, update_freq=100),
        bar,
    ]
    fit.fit(
        model,
        lambda step: batching.training_batches(pairs, FLAGS.batch_tokens, FLAGS.seed, skip=step)[0],
        buckets.steps_per_epoch,
        last_step,
        stopwatch,
        minutes,
        watchers,
    )


def finish(FLAGS, inference, vocabulary, folder, corpus, description):
    """Average, score the test split, export, and show some translations."""
    last = checkpoint.checkpoints(folder.checkpoints)[-FLAGS.average_checkpoints :]
    averaging.write_average(folder.averaged, last)
    checkpoint.load_weights(folder.averaged, inference)
    module = TranslationModule(inference, vocabulary, search(FLAGS.beam_size, FLAGS.length_penalty))
    translations = Translator(module).translate(corpus.test.sources)
    scores = bleu.score(translations, corpus.test.targets)
    write_json(folder.evaluation, {"split": "test", "averaged_checkpoints": len(last), "beam_size": FLAGS.beam_size, **scores})
    print(f"mean of the last {len(last)} checkpoints, beam {FLAGS.beam_size}: BLEU {scores['bleu']}  chrF {scores['chrf']}")
    print(f"  {scores['bleu_signature']}")
    for source, translation, reference in list(zip(corpus.test.sources, translations, corpus.test.targets, strict=True))[:5]:
        print(f"\n  source       {source}\n  translation  {translation}\n  reference    {reference}")
    version = export(module, flags.export_dir(FLAGS, folder.path), {**description, "scores": scores})
    print(f"\nexported to {version}. Try it:\n  echo '{corpus.test.sources[0]}' | python -m keras_transformer.translate --model={version}")


if __name__ == "__main__":
    flags.run(main, GROUPS)
