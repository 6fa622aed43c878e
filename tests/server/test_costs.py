"""What a request may take is known before it is computed, and until when it is waited for."""

import dataclasses

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

pytest.importorskip("fastapi")

from keras_transformer.saved_models.session import Signature
from keras_transformer.saved_models.signature import TensorSpec
from keras_transformer.server import costs, transport
from keras_transformer.server.options import RequestError, ServeOptions
from keras_transformer.server.rows import Rows

TEXT = TensorSpec("text:0", tf.string, (None,))
ALIGN = Signature(
    {"reference": TEXT, "text": TEXT},
    {"attention": TensorSpec("a:0", tf.float32, (None, 3, 4, None, None))},
    {},
)
SEARCH = Signature({"text": TEXT}, {"translation": TEXT}, {})


def asked(count, size, *names, **options):
    text = np.full(count, b"x" * size, dtype=object)
    return Rows(count, dict.fromkeys(names, text), {k: np.array([v]) for k, v in options.items()})


def within(name, signature, task, memory=2**30):
    return costs.within_limits(name, signature, task, costs.Sizes(), ServeOptions(), memory)


def test_weights_between_two_texts_are_bounded_by_the_answer_they_make():
    task = asked(2, 98, "text", "reference")
    limits = ServeOptions(max_response_bytes=2 * 3 * 4 * 100 * 100 * costs.WRITTEN)
    costs.within_limits("align", ALIGN, task, costs.Sizes(), limits, 2**30)
    limits = dataclasses.replace(limits, max_response_bytes=limits.max_response_bytes - 1)
    with pytest.raises(RequestError, match="rows of 100 tokens may have"):
        costs.within_limits("align", ALIGN, task, costs.Sizes(), limits, 2**30)
    with pytest.raises(RequestError, match=r"--max_response_bytes=268,435,456\. Send fewer rows"):
        within("align", ALIGN, asked(1, 3960, "text", "reference"))


def test_a_wide_long_search_is_refused_and_options_beyond_the_limits_count_as_the_limits():
    with pytest.raises(RequestError, match=r"`translate` may take .* of --max_memory_bytes"):
        within("translate", SEARCH, asked(1, 1500, "text", beam_size=2**31 - 1, max_length=2**31))
    memory = [
        within("translate", SEARCH, asked(1, 9, "text", beam_size=b)).row_memory
        for b in (32, 2**31 - 1)
    ]
    assert memory[0] == memory[1]


def test_texts_are_counted_by_the_model_s_own_pieces_as_far_as_it_reads_them(tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("the cat sat on the mat\n" * 20)
    model = tmp_path / "model"
    sentencepiece.SentencePieceTrainer.train(
        input=str(lines),
        model_prefix=str(model),
        vocab_size=30,
        minloglevel=2,
        hard_vocab_limit=False,
    )
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=f"{model}.model")
    text = b"the cat sat on the mat"
    pieces = len(tokenizer.encode(text))
    assert pieces < len(text)
    sizes = costs.Sizes(tokenizers=(tokenizer,))
    assert sizes.tokens(text) == pieces + 2
    assert sizes.tokens(text + b" \xff<mask>") >= pieces + 4
    assert dataclasses.replace(sizes, most_tokens=3).tokens(text) == 5
    # The control: without a tokenizer each byte counts.
    assert costs.Sizes().tokens(text) == len(text) + 2


def test_control_usual_requests_pass():
    assert within("serving_default", SEARCH, asked(64, 200, "text")).row_memory > 0
    within("align", ALIGN, asked(1, 300, "text", "reference"))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 30),
        ({"grpc-timeout": "500m"}, 0.5),
        ({"grpc-timeout": "2H"}, 30),
        ({"x-envoy-expected-rq-timeout-ms": "1500"}, 1.5),
    ],
)
def test_a_client_may_ask_for_less_time(headers, seconds):
    assert transport.seconds(headers, 30000) == seconds


def test_what_is_no_time_is_refused():
    with pytest.raises(RequestError, match="grpc-timeout must be a time such as 500m"):
        transport.seconds({"grpc-timeout": "soon"}, 1)
