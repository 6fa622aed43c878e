"""A language model's module, with random weights: its continuations, and how likely a text is."""

import math

import numpy as np
import pytest
import tensorflow as tf
from drawn_models import random_language_model
from eager import eagerly

from keras_transformer.inference.generator import Generator
from keras_transformer.tasks.language_modelling.module import GenerationModule
from pipelines.special_ids import BOS, EOS, PAD

PROMPTS = ["two dogs", "", "a", "日本 <b>"]


@pytest.fixture(scope="module", autouse=True)
def without_graphs():
    with eagerly():
        yield


@pytest.fixture(scope="module")
def model():
    return random_language_model()


@pytest.fixture
def module_of(model, pieces):
    return lambda **options: GenerationModule(model, pieces, GenerationModule.options_of(options))


def recomputed(model, pieces, prompt, new):
    """Greedy search that runs the model over the whole text for each new piece."""
    ids = pieces.tokenize([prompt]).numpy()[0].tolist()[:-1]
    end = len(ids) + new
    while len(ids) < end:
        logits = np.array(model(np.array([[BOS, *ids]])))[0, -1]
        logits[[PAD, BOS]] = -np.inf
        ids.append(EOS if len(ids) == end - 1 else int(logits.argmax()))
        if ids[-1] == EOS:
            break
    return ids


def test_greedy_search_gives_what_recomputing_gives(module_of, model, pieces):
    module = module_of(beam_size=1, max_length="+6", min_length=1)
    ids, _ = module.search(module.options.search(), tf.constant(PROMPTS))
    for prompt, row in zip(PROMPTS, ids[:, 0].numpy(), strict=True):
        # A prompt's length counts an end that is not read, so one more piece may come.
        assert row[row != PAD].tolist() == recomputed(model, pieces, prompt, 7)


@pytest.mark.parametrize("options", [{}, {"beam_size": 3}, {"samples": 2, "temperature": 2.0}])
def test_a_text_begins_with_its_prompt_whoever_stands_beside_it(module_of, options):
    module = module_of(max_length="+4", **options)
    texts = Generator.of(module).generate(PROMPTS)
    alone = Generator.of(module).generate(PROMPTS, batch_tokens=1)
    assert texts == alone
    for prompt, text in zip(PROMPTS, texts, strict=True):
        assert text.startswith(prompt)
        assert len(text) > len(prompt)


def test_without_a_search_text_is_drawn(module_of):
    assert module_of().options.samples == 1
    assert module_of().options.top_p == 0.9
    assert module_of(top_p=0.5).options.top_p == 0.5
    assert module_of(beam_size=2, seed=3).options.samples == 0
    assert module_of(seed=3).options.seed == 3
    assert module_of(samples=0).options.samples == 0


def test_a_wrong_option_is_refused_before_weights_are_loaded(tmp_path):
    (tmp_path / "model.json").write_text('{"task": "language_modelling"}')
    with pytest.raises(ValueError, match=r"Received: top_p=2\.0\."):
        Generator.load(tmp_path, top_p=2.0)


@pytest.mark.parametrize("graph", ["saved_model.pb", "decoder.onnx", "no graph"])
def test_a_model_of_another_task_is_refused(tmp_path, graph):
    """A SavedModel that was none of ours ended in a KeyError."""
    (tmp_path / "model.json").write_text("{}")
    (tmp_path / graph).write_bytes(b"")
    with pytest.raises(ValueError, match=r"the task language_modelling\. .*`translate`"):
        Generator.load(tmp_path)


def test_an_option_of_a_saved_model_is_refused_but_for_none(tmp_path):
    (tmp_path / "model.json").write_text('{"task": "language_modelling"}')
    (tmp_path / "saved_model.pb").write_bytes(b"")
    for options, message in (
        ({"beam_size": 2, "seed": None}, r"as it was exported\. Received: beam_size\."),
        ({"beam_size": None}, "holds no graph"),
    ):
        with pytest.raises(ValueError, match=message):
            Generator.load(tmp_path, **options)


def test_a_text_that_the_model_would_cut_is_refused(module_of):
    generator = Generator.of(module_of(samples=0, max_length="+1"))
    fits = "b" * 1023
    assert generator._lengths(["a", fits]) == [2, 1024]
    generator.perplexities([fits])  # A control.
    with pytest.raises(ValueError, match=r"^line 2 has 1,025 tokens.* Shorten it\.$"):
        generator.generate(["a", f"{fits}b"])
    with pytest.raises(ValueError, match=r"^line 2 has 1,025 tokens.* Split it into several lines"):
        generator.perplexities(["a", f"{fits}b"])


def test_long_texts_go_through_the_model_few_at_a_time():
    sizes = []

    def answer(text):
        sizes.append(len(text))
        tokens = np.ones(len(text))
        return {"log_probability": -tokens, "tokens": tokens, "generated": text}

    functions = dict.fromkeys(("score", "serving_default"), answer)
    generator = Generator(functions, lambda lines: [*map(len, lines)], 1024, "+1000")
    generator.perplexities(["a", *["b" * 1000] * 5])
    assert sizes == [2, 2, 2]
    # With their continuations, up to the model's positions, they are long.
    generator.generate(["a"] * 3)
    assert sizes[3:] == [2, 1]


def test_learned_positions_bound_a_text(pieces):
    module = GenerationModule(random_language_model("learned", max_positions=9), pieces)
    ids, _ = module.search(module.options.search(), tf.constant(["two", "b" * 8]))
    assert ids.shape[2] <= 9
    generator = Generator.of(module)
    for ask in (generator.generate, generator.perplexities):
        with pytest.raises(ValueError, match="has 10 tokens, more than the 9 allowed"):
            ask(["b" * 9])


def test_a_text_is_as_likely_as_the_model_says(module_of, model, pieces):
    [scored] = [module_of().score(tf.constant(["two dogs"]))]
    ids = pieces.tokenize(["two dogs"]).numpy()[0]
    logits = np.array(model(np.array([[BOS, *ids[:-1]]])), np.float64)[0]
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    expected = log_p[np.arange(len(ids)), ids].sum()
    assert scored["log_probability"].numpy()[0] == pytest.approx(expected, rel=1e-5)
    assert scored["tokens"].numpy().tolist() == [len(ids)]


def test_perplexities_are_over_pieces_and_over_words(module_of):
    lines = ["two dogs", "a"]
    generator = Generator.of(module_of())
    apart = generator.perplexities(lines, batch_tokens=1)
    scored = module_of().score(tf.constant(lines))
    nats = -float(tf.reduce_sum(scored["log_probability"]))
    pieces = int(tf.reduce_sum(scored["tokens"]))
    # Some 2,000 with three decimals: as many digits as a float32 has.
    assert apart == {
        "lines": 2,
        "pieces": pieces,
        "perplexity": pytest.approx(math.exp(nats / pieces), rel=2e-6),
        "perplexity_of_words": pytest.approx(math.exp(nats / 5), rel=1e-4),
    }
    together = generator.perplexities(line for line in lines)
    assert together["perplexity"] == pytest.approx(apart["perplexity"], rel=2e-6)


def test_prompts_may_be_generated_and_no_lines_have_no_perplexity(module_of):
    generator = Generator.of(module_of(beam_size=1, max_length="+2"))
    assert generator.generate(iter(PROMPTS)) == generator.generate(PROMPTS)
    assert generator.generate([]) == []
    with pytest.raises(ValueError, match=r"^`lines` must have a line\. Received: none\.$"):
        generator.perplexities([])
    with pytest.raises(ValueError, match=r"^`prompts` must be a list of strings, .*: 'a'\.$"):
        generator.generate("a")


@pytest.mark.parametrize("option", [{"constrained": True}, {"coverage_penalty": 0.1}])
def test_options_that_need_a_source_are_refused(module_of, option):
    with pytest.raises(ValueError, match=rf"^`{next(iter(option))}` needs a source"):
        module_of(**option)


def test_the_signatures_agree_with_each_other(module_of):
    module = module_of(beam_size=2, max_length="+3")
    served = module.functions()
    text = tf.constant(["two dogs", "a"])
    best = served["serving_default"](text)["generated"]
    several = served["nbest"](text)
    assert several["generated"].shape == (2, 2)
    assert best.numpy().tolist() == several["generated"][:, 0].numpy().tolist()
    cold = served["sample"](text, tf.constant([1e-3]), tf.constant([1], tf.int64), tf.constant([3]))
    greedy = module_of(beam_size=1, max_length="+3", min_length=2).generate(text)
    assert cold["generated"].numpy().tolist() == greedy["generated"].numpy().tolist()
    neutral = tf.constant([1.0])
    bars = served["next_pieces"](text, tf.constant([""]), neutral, tf.constant([0]), neutral)
    assert bars["pieces"].shape == (2, 20)
    assert (np.diff(bars["model_probabilities"].numpy(), axis=1) <= 0).all()
