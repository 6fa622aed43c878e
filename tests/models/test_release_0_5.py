"""A run of release 0.5 loads and computes what 0.5 computed. For a SavedModel of that release see
tests/inference/test_exported.py.
"""

import functools
import json
import pathlib

import numpy as np
import tensorflow as tf

from keras_transformer.inference.translator import Translator
from keras_transformer.models import Hyperparameters, Transformer
from keras_transformer.training import checkpoint
from keras_transformer.training.optimizer import TransformerSchedule, optimizer

RELEASE = pathlib.Path(__file__).parents[1] / "fixtures" / "release_0_5"
RUN = RELEASE / "run"
OUTPUTS = json.loads((RELEASE / "outputs.json").read_text(encoding="utf-8"))
SOURCES = OUTPUTS["sources"]
# What `next_losses` returned with the code of 0.5.
NEXT_LOSSES = [10.409173011779785, 7.025088310241699, 5.799095630645752, 6.347607612609863]


@functools.cache
def translator(**options):
    return Translator.load(RUN, **options)


def archive():
    return checkpoint.read_archive(checkpoint.read_newest(RUN / "checkpoints")[0])


def test_the_run_translates_as_it_did_and_hypotheses_have_the_scores_that_they_had():
    assert translator(beam_size=1).translate(SOURCES) == OUTPUTS["greedy"]
    # By the search that is the default, of 4.
    pairs = translator(num_hypotheses=2).translate_in_detail(SOURCES)
    assert [first.text for first, _ in pairs] == OUTPUTS["beam_4"]
    assert [second.text for _, second in pairs] == OUTPUTS["second"]
    expected = OUTPUTS["scores"]
    np.testing.assert_allclose([first.score for first, _ in pairs], expected, rtol=0, atol=1e-5)


def test_references_score_as_they_did():
    scores = translator(num_hypotheses=2).score(SOURCES, OUTPUTS["greedy"])
    expected = OUTPUTS["reference_scores"]
    np.testing.assert_allclose(
        [log_probability for log_probability, _ in scores],
        [log_probability for log_probability, _ in expected],
        rtol=0,
        atol=1e-5,
    )
    assert [tokens for _, tokens in scores] == [tokens for _, tokens in expected]


def restored():
    """The model in training, with its optimizer and its random states."""
    description = json.loads((RUN / "model.json").read_text(encoding="utf-8"))
    model = Transformer(Hyperparameters(**description["hyperparameters"]))
    model.compile(optimizer(TransformerSchedule(24, 100)), "mse")
    model.optimizer.build(model.trainable_variables)
    assert checkpoint.restore(checkpoint.read_newest(RUN / "checkpoints")[0], model)["step"] == 636
    return model


def next_losses(model, steps):
    """The losses of more steps, with dropout, on random ids."""
    rng = np.random.default_rng(0)
    variables = model.trainable_variables
    losses = []
    for _ in range(steps):
        source = rng.integers(4, 290, (6, 9))
        target = rng.integers(4, 290, (6, 8))
        with tf.GradientTape() as tape:
            logits = model((source, target[:, :-1]), training=True)
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(target[:, 1:], logits)
            )
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        model.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        losses.append(float(loss))
    return losses


def test_training_resumes_from_the_checkpoint_as_it_did():
    np.testing.assert_allclose(next_losses(restored(), 4), NEXT_LOSSES, rtol=1e-6)


def test_the_weights_have_the_names_and_the_order_that_they_had():
    names = [name for name in archive() if name.startswith(checkpoint.WEIGHTS)]
    assert [checkpoint.WEIGHTS + weight.path for weight in restored().weights] == names
