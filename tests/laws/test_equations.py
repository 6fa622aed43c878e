"""The function of each numbered equation of section 3 is what the models run, and a reader gets
from `Transformer` to equation 1 by few files.
"""

import inspect
import pathlib
import sys

import numpy as np
import pytest

import keras_transformer
from keras_transformer.layers import FeedForward, scaled_dot_product_attention
from keras_transformer.models import (
    BareTextEncoder,
    ConvolutionalTranslator,
    LanguageModel,
    Transformer,
    VisionTransformer,
)

PACKAGE = str(pathlib.Path(keras_transformer.__file__).parent)
EQUATIONS = {1: scaled_dot_product_attention, 2: FeedForward.call}
IDS = np.array([[5, 6, 7], [8, 9, 0]])
SIZES = {"vocabulary_size": 20, "num_layers": 1, "d_model": 8, "d_ff": 8, "num_heads": 2}
PICTURE = {"height": 4, "width": 4, "patch_size": 2, "classes": 3, "channels": 1}
STACK = {name: size for name, size in SIZES.items() if name != "vocabulary_size"}
WITHOUT_D_FF = {"vocabulary_size": 20, "num_layers": 1, "d_model": 8}
# The model, its inputs, and the equations of those in EQUATIONS that are its own.
MODELS = {
    "translator": (lambda: Transformer(**SIZES), (IDS, IDS), {1, 2}),
    "language model": (lambda: LanguageModel(**SIZES), IDS, {1, 2}),
    "text encoder": (lambda: BareTextEncoder(**SIZES), (IDS, 0 * IDS), {1, 2}),
    "pictures": (
        lambda: VisionTransformer(**PICTURE, **STACK),
        np.zeros((2, 4, 4, 1), "float32"),
        {1, 2},
    ),
    "convolutions": (lambda: ConvolutionalTranslator(**WITHOUT_D_FF), (IDS, IDS), {1}),
    # A control: what replaces the paper's comparison in all attentions.
    "unscaled": (lambda: Transformer(**SIZES, attention="dot_product"), (IDS, IDS), {2}),
}


def ways(call):
    """For the number of each equation that a call runs, our files on the way to it."""
    codes = {function.__code__: number for number, function in EQUATIONS.items()}
    files_by_number = {}

    def follow(frame, event, argument):
        number = codes.get(frame.f_code) if event == "call" else None
        if number and number not in files_by_number:
            files = []
            while frame:
                if frame.f_code.co_filename.startswith(PACKAGE):
                    files.append(frame.f_code.co_filename)
                frame = frame.f_back
            files_by_number[number] = set(files)

    sys.setprofile(follow)
    try:
        call()
    finally:
        sys.setprofile(None)
    return files_by_number


@pytest.mark.parametrize("name", MODELS)
def test_a_model_runs_the_functions_of_the_equations(name):
    make, inputs, equations = MODELS[name]
    model = make()
    assert set(ways(lambda: model(inputs))) == equations


def test_few_files_lie_between_the_transformer_and_equation_1():
    model = Transformer(**SIZES)
    files = {*ways(lambda: model((IDS, IDS)))[1], inspect.getfile(Transformer)}
    lines = sum(len(pathlib.Path(file).read_text().splitlines()) for file in files)
    assert len(files) <= 6, sorted(files)
    assert lines <= 1200, (lines, sorted(files))
