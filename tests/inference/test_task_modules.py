"""The modules of a language model and of a parser, with random weights: continuations, how likely a
text is, and outputs that are all trees over the words.
"""

import math
import pathlib
import types

import numpy as np
import pytest
import tensorflow as tf
from drawn_models import random_language_model, random_model
from small_model import eagerly
from tensorflow.core.protobuf import meta_graph_pb2
from written import escaped

from keras_transformer.decoding import DecodingOptions
from keras_transformer.inference import exported, functions
from keras_transformer.inference.generator import Generator
from keras_transformer.inference.loading import load_model
from keras_transformer.inference.translator import Translator
from keras_transformer.tasks.language_modelling.module import GenerationModule
from keras_transformer.tasks.parsing.module import ParsingModule
from keras_transformer.tasks.translation.module import TranslationModule
from pipelines import corpora
from pipelines.corpora import Treebank, treebank
from pipelines.special_ids import BOS, EOS, PAD
from pipelines.trees import parse
from pipelines.trees.linearization import LEAVES, to_symbols
from pipelines.vocabularies.vocabulary import learn

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


TREEBANK = pathlib.Path(__file__).parents[1] / "treebank"
LINES = ["The (", "x", " ", "1/2 bird", "A\u00a0bird\u3000sings", "\u00a0"]


@pytest.fixture(scope="module")
def both():
    """A parser and a translator of the same model."""
    corpus = corpora.load("treebank", data_dir=TREEBANK)
    vocabulary = learn(corpus.train.sources + corpus.train.targets, 400, corpus.tags)
    model = random_model(vocabulary_size=400)
    options = DecodingOptions(beam_size=2, num_hypotheses=2, max_length=6, min_length=1)
    return ParsingModule(model, vocabulary, options), TranslationModule(model, vocabulary, options)


def test_whatever_the_model_writes_is_a_tree_over_the_words(both):
    parser, _ = map(Translator, both)
    details = parser.translate_in_detail(LINES)
    for line, hypotheses in zip(LINES, details, strict=True):
        assert len(hypotheses) == 2
        words = list(map(escaped, line.split()))
        for hypothesis in hypotheses:
            assert (parse(hypothesis.text).words if words else hypothesis.text) == (words or "")
    assert parser.translate(LINES) == [hypotheses[0].text for hypotheses in details]
    # A control: what the model wrote was no tree.
    assert not any(")S" in piece for hypotheses in details for piece in hypotheses[0].pieces)


def test_a_tree_is_scored_as_its_symbols(both):
    parser, translator = map(Translator, both)
    tree = parse("(S (NP (XX The) (XX cat)) (VP (XX sings)))")
    symbols = " ".join(to_symbols(tree))
    sentence = "The cat sings"
    [(log_probability, tokens)] = parser.score([sentence], [str(tree)])
    assert tokens == len(symbols.split()) + 1
    assert [(log_probability, tokens)] == translator.score([sentence], [symbols])
    assert [(log_probability, tokens)] == parser.score([sentence], [symbols])
    # A control: as text, brackets and words are other pieces.
    assert translator.score([sentence], [str(tree)])[0][1] > tokens


def test_an_export_counts_the_symbols_of_a_tree_too(both, monkeypatch):
    """It needs no run: the SavedModel is read as far as its signatures and its tokenizer."""
    parser, translator = both

    def lengths(output):
        model = types.SimpleNamespace(s=parser.vocabulary.model)
        node = types.SimpleNamespace(op="SentencepieceOp", attr={"model": model})
        string = meta_graph_pb2.TensorInfo(name="text:0", dtype=tf.string.as_datatype_enum)
        signature = meta_graph_pb2.SignatureDef(inputs={"text": string}, outputs={output: string})
        meta_graph = types.SimpleNamespace(
            signature_def={"serving_default": signature},
            graph_def=types.SimpleNamespace(node=[node]),
        )
        monkeypatch.setattr(functions, "read_meta_graph", lambda folder: meta_graph)
        return exported.Exported(pathlib.Path("here"), {}).target_lengths(trees)

    trees = ["(S (NP (XX The) (XX cat)) (VP (XX sings)))", "(S XX )S", ""]
    assert lengths("tree") == Translator(parser)._model.target_lengths(trees)
    # A control: a translator's references are text.
    assert lengths("translation") == Translator(translator)._model.target_lengths(trees)
    assert lengths("tree")[0] < lengths("translation")[0]


@pytest.fixture(scope="module", params=LEAVES)
def leaves(request):
    return request.param


@pytest.fixture(scope="module")
def constrained(leaves):
    """The module of a parser that can write only trees."""
    corpus = corpora.load("treebank", data_dir=TREEBANK, tree_leaves=leaves)
    vocabulary = learn(corpus.train.sources + corpus.train.targets, 420, corpus.tags)
    options = DecodingOptions(beam_size=2, constrained=True, max_length="+12")
    return ParsingModule(random_model(vocabulary_size=420), vocabulary, options)


def test_a_constrained_parser_writes_the_tree_itself(constrained, leaves):
    parser = Translator(constrained)
    details = parser.translate_in_detail(LINES)
    training_labels = {
        leaf.label
        for gold in Treebank(data_dir=str(TREEBANK)).trees("train")
        for leaf in gold.preterminals()
    }
    trees = [hypothesis.text for [hypothesis] in details]
    scored = parser.score(LINES, trees)
    labels = set()
    for line, [hypothesis], (_, tokens) in zip(LINES, details, scored, strict=True):
        if not line.strip():
            continue
        tree = parse(hypothesis.text)
        assert tree.words == list(map(escaped, line.split()))
        labels |= {leaf.label for leaf in tree.preterminals()}
        # The tree was not mended: its symbols are the pieces of the search.
        assert tokens == len(hypothesis.pieces)
        assert ("".join(hypothesis.pieces).count("XX") == 0) == (leaves == "words")
    assert labels <= training_labels if leaves == "parts_of_speech" else labels == {"XX"}
    assert len(labels) > 1 or leaves != "parts_of_speech"


def test_any_white_space_parts_words(constrained, leaves):
    """The source and the search's leaves count the same words as the mending of trees."""
    texts = [
        "The dog sees",
        "The\tdog  sees\n",
        " The\x0bdog\r\nsees",
        "The\u00a0dog\u3000\x85sees\u2028",
    ]
    outputs = constrained._leaves(tf.constant(texts))
    names = ["count", "leaves"] if leaves == "words" else ["count"]
    for ids in (constrained.source_ids(texts), *(outputs[name] for name in names)):
        expected, *variants = ids.numpy().tolist()
        assert variants == [expected] * 3


def test_leaves_are_scored_too_and_tags_only_where_they_are_written(constrained, leaves):
    parser = Translator(constrained)
    [gold, *_] = Treebank(data_dir=str(TREEBANK)).trees("test")
    sentence = treebank.words_of(gold)
    [(log_probability, tokens)] = parser.score([sentence], [str(gold)])
    symbols = " ".join(to_symbols(gold, leaves))
    assert parser.score([sentence], [symbols]) == [(log_probability, tokens)]
    retagged = str(gold).replace("(DT ", "(NN ")
    differs = parser.score([sentence], [retagged])[0][0] != log_probability
    assert differs == (leaves == "parts_of_speech")


def test_a_translator_refuses_the_option(both):
    _, translator = both
    with pytest.raises(ValueError, match=r"^`constrained` is for parsers.*constrained=True\."):
        TranslationModule(
            translator._graphs.model, translator.vocabulary, DecodingOptions(constrained=True)
        )
    with pytest.raises(ValueError, match=r"^constrained=True and no_repeat_ngram_size=2 exclude"):
        DecodingOptions(constrained=True, no_repeat_ngram_size=2)


def test_the_signatures_give_trees(both):
    functions = both[0].functions()
    assert list(functions["serving_default"](["a b"])) == ["tree"]
    nbest = functions["nbest"](["a b"])
    assert list(nbest) == ["trees", "scores"]
    for tree in nbest["trees"].numpy().ravel():
        assert parse(tree.decode()).words == ["a", "b"]


def test_a_run_of_an_unknown_task_is_refused(tmp_path):
    (tmp_path / "model.json").write_text('{"task": "drawing"}', encoding="utf-8")
    message = r"of the task translation or parsing\. Received: one of the task drawing"
    with pytest.raises(ValueError, match=message):
        load_model(str(tmp_path), "float32", {})
