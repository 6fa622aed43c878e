"""The paper's hyperparameters, typed here by hand, and what the flag files make of them: every row
of Table 3. The function of each numbered equation of section 3 is what the models run.
"""

import configparser
import inspect
import pathlib
import sys

import numpy as np
import pytest
from command_flags import EVERY_FLAG
from oracles.paper import millions, widths

import keras_transformer
from keras_transformer.flagfiles import FLAGFILES, expand_flagfiles
from keras_transformer.layers import FeedForward, scaled_dot_product_attention
from keras_transformer.models import (
    BareTextEncoder,
    ConvolutionalTranslator,
    Hyperparameters,
    LanguageModel,
    Transformer,
    VisionTransformer,
)


def typed(text):
    """The flags that a text says, a word for each."""
    return dict(word.split("=") for word in text.split())


# Vaswani et al. 2017, table 3: N, d_model, d_ff, h, d_k, d_v, P_drop, epsilon_ls, thousand steps,
# and millions of parameters where the paper prints them.
COLUMNS = ("num_layers", "d_model", "d_ff", "num_heads", "d_k", "d_v", "dropout", "label_smoothing")
BASE = (6, 512, 2048, 8, 64, 64, 0.1, 0.1)
TABLE_3 = {
    "base": (*BASE, 100, 65),
    "table3/base": (*BASE, 100, 65),
    "table3/a_1_head": (6, 512, 2048, 1, 512, 512, 0.1, 0.1, 100, None),
    "table3/a_4_heads": (6, 512, 2048, 4, 128, 128, 0.1, 0.1, 100, None),
    "table3/a_16_heads": (6, 512, 2048, 16, 32, 32, 0.1, 0.1, 100, None),
    "table3/a_32_heads": (6, 512, 2048, 32, 16, 16, 0.1, 0.1, 100, None),
    "table3/b_d_k_16": (6, 512, 2048, 8, 16, 64, 0.1, 0.1, 100, 58),
    "table3/b_d_k_32": (6, 512, 2048, 8, 32, 64, 0.1, 0.1, 100, 60),
    "table3/c_2_layers": (2, 512, 2048, 8, 64, 64, 0.1, 0.1, 100, 36),
    "table3/c_4_layers": (4, 512, 2048, 8, 64, 64, 0.1, 0.1, 100, 50),
    "table3/c_8_layers": (8, 512, 2048, 8, 64, 64, 0.1, 0.1, 100, 80),
    "table3/c_d_model_256": (6, 256, 2048, 8, 32, 32, 0.1, 0.1, 100, 28),
    "table3/c_d_model_1024": (6, 1024, 2048, 8, 128, 128, 0.1, 0.1, 100, 168),
    "table3/c_d_ff_1024": (6, 512, 1024, 8, 64, 64, 0.1, 0.1, 100, 53),
    "table3/c_d_ff_4096": (6, 512, 4096, 8, 64, 64, 0.1, 0.1, 100, 90),
    "table3/d_dropout_0": (6, 512, 2048, 8, 64, 64, 0.0, 0.1, 100, None),
    "table3/d_dropout_0.2": (6, 512, 2048, 8, 64, 64, 0.2, 0.1, 100, None),
    "table3/d_label_smoothing_0": (6, 512, 2048, 8, 64, 64, 0.1, 0.0, 100, None),
    "table3/d_label_smoothing_0.2": (6, 512, 2048, 8, 64, 64, 0.1, 0.2, 100, None),
    "table3/e_learned_positions": (*BASE, 100, None),
    "big": (6, 1024, 4096, 16, 64, 64, 0.3, 0.1, 300, 213),
    "table3/big": (6, 1024, 4096, 16, 64, 64, 0.3, 0.1, 300, None),
    # Section 6.1: dropout 0.1 for English-French.
    "big_en_fr": (6, 1024, 4096, 16, 64, 64, 0.1, 0.1, 300, None),
    "base_en_fr": (*BASE, 100, None),
}
COUNTED = [name for name, row in TABLE_3.items() if row[-1]]
# All that base says (sections 5.1, 5.3 and 6.1), and what each of the others changes of that.
# 10-minute intervals: 5 of the 72 of 12 hours; 20 of the 504 of 3.5 days.
ALL_OF_BASE = typed("""
    vocabulary_model=bpe batch_tokens=25000 warmup_steps=4000 learning_rate_scale=1.0
    checkpoint_minutes=10 average_over=minutes beam_size=4 length_penalty=0.6 max_length=+50
    min_length=1 corpus=tfds dataset=wmt14_translate/de-en source_language=en target_language=de
    vocabulary_size=37000 num_layers=6 d_model=512 d_ff=2048 num_heads=8 dropout=0.1
    label_smoothing=0.1 residual_initialization=glorot max_steps=100000 average_checkpoints=5
    average_share=0.0694""")
EN_FR = typed("""dataset=wmt14_translate/fr-en target_language=fr vocabulary_size=32000
    vocabulary_model=word_piece""")
# Section 6.2: "on the development set, newstest2013 [...] but no checkpoint averaging".
ON_NEWSTEST2013 = {"average_checkpoints": "1", "splits": "train,validation,validation"}
ALL_OF_BIG = ALL_OF_BASE | typed("""
    d_model=1024 d_ff=4096 num_heads=16 dropout=0.3 max_steps=300000 keep_checkpoints=20
    average_checkpoints=20 average_share=0.0397""")
# Section 6.3: 4 layers, d_model 1024, all else as base; beam 21, alpha 0.3, output at most input
# length + 300. Dropout, of attention and of residual branches, is not told.
ALL_OF_PARSING = ALL_OF_BASE | typed("""
    beam_size=21 length_penalty=0.3 max_length=+300
    task=parsing corpus=treebank vocabulary_size=16000 num_layers=4 d_model=1024 dropout=0.2
    attention_dropout=0.2 max_train_length=512""")
for of_translation in ("dataset", "target_language"):
    del ALL_OF_PARSING[of_translation]


def changes(row):
    """The values of a row of table 3 that differ from base. Widths follow the number of heads."""
    columns = zip(COLUMNS, row, BASE, strict=False)
    changed = {column: f"{value:g}" for column, value, of_base in columns if value != of_base}
    return {"num_heads": changed["num_heads"]} if "num_heads" in changed else changed


EXPECTED = {
    "base": ALL_OF_BASE,
    "base_en_fr": {**ALL_OF_BASE, **EN_FR},
    "big": ALL_OF_BIG,
    "big_en_fr": {**ALL_OF_BIG, **EN_FR, "dropout": "0.1"},
    "parsing": ALL_OF_PARSING,
    # Dropout is that of the authors' program.
    "parsing_semi": ALL_OF_PARSING
    | typed("corpus=mixture vocabulary_size=32000 dropout=0.1 attention_dropout=0.1"),
    **{
        name: ALL_OF_BASE | ON_NEWSTEST2013 | changes(row)
        for name, row in TABLE_3.items()
        if name.startswith("table3/")
    },
    "table3/big": ALL_OF_BIG | ON_NEWSTEST2013,
}
EXPECTED["table3/e_learned_positions"]["positions"] = "learned"


# Our own flag files: the figures of README.md were measured with them. A word for each flag, and
# what a word says last holds. Of `make train`, and of the models that are set beside it.
QUARTER_OF_AN_HOUR = """
vocabulary_size=4000 dropout=0.1 max_train_length=100 batch_tokens=512 warmup_steps=500
learning_rate_scale=0.5 max_minutes=15 checkpoint_minutes=1 keep_checkpoints=8
average_checkpoints=5 validation_sentences=200
"""
# Of the models of pictures.
OF_PICTURES = """
task=image_classification norm=pre norm_epsilon=1e-12 activation=gelu attention_bias=true
dropout=0.1 label_smoothing=0.1 num_layers=4 d_model=64 d_ff=256 num_heads=4 schedule=cosine
learning_rate=0.0015 keep_checkpoints=5 average_checkpoints=3
"""
MULTI30K = """
corpus=text_files train_prefix=train.lc.norm.tok valid_prefix=val.lc.norm.tok
test_prefix=test_2016_flickr.lc.norm.tok tokenize=none vocabulary_size=5000 num_layers=4
d_model=128 d_ff=256 num_heads=4 dropout=0.2 token_dropout=0.1 positions=rotary
max_train_length=100 batch_tokens=1024 warmup_steps=2000 learning_rate_scale=0.9 max_steps=21526
max_minutes=90 average_over=epochs keep_checkpoints=10 average_checkpoints=10
validation_sentences=0 beam_size=5 length_penalty=1.0
"""
OURS = {
    "tiny": f"""{QUARTER_OF_AN_HOUR}
        num_layers=3 d_model=256 d_ff=512 num_heads=4 positions=rotary
        embedding_initialization=cooccurrence protect=placeholders,tags,urls,emails,numbers
        truecase=""",
    "parsing_small": """
        task=parsing corpus=treebank source_language=en tree_leaves=words vocabulary_size=4000
        num_layers=4 d_model=192 d_ff=512 num_heads=4 dropout=0.1 positions=rotary
        embedding_initialization=cooccurrence max_train_length=250 batch_tokens=1024
        warmup_steps=1500 learning_rate_scale=0.7 max_minutes=120 checkpoint_minutes=4
        keep_checkpoints=8 average_checkpoints=5 validation_sentences=0 constrained=true
        beam_size=12 length_penalty=0""",
    "multi30k": MULTI30K,
    "multi30k_diversified": f"""{MULTI30K}
        max_steps=30000 keep_checkpoints=14 average_checkpoints=6""",
    "recurrent": f"{QUARTER_OF_AN_HOUR} architecture=recurrent num_layers=2 d_model=256",
    "convolutional": f"""{QUARTER_OF_AN_HOUR}
        architecture=convolutional num_layers=5 d_model=192 kernel_size=3 positions=learned""",
    "vit": f"""{OF_PICTURES} pictures=digits patch_size=2 shift=1 batch_tokens=1088
        warmup_steps=200 max_steps=4000 max_minutes=5 checkpoint_minutes=0.5""",
    "vit_mnist": f"""{OF_PICTURES} pictures=mnist_5000 patch_size=4 shift=2 batch_tokens=3200
        warmup_steps=300 max_steps=6000 max_minutes=15 checkpoint_minutes=1""",
    "vit_fashion": f"""{OF_PICTURES} pictures=fashion_mnist patch_size=4 shift=2 batch_tokens=3200
        warmup_steps=300 max_steps=12000 max_minutes=25 checkpoint_minutes=1""",
    "toy": """
        corpus=reverse source_language=words target_language=reversed vocabulary_size=300
        num_layers=1 d_model=64 d_ff=128 num_heads=4 dropout=0 label_smoothing=0
        max_train_length=32 batch_tokens=512 warmup_steps=200 learning_rate_scale=0.5
        max_epochs=20 keep_checkpoints=3 average_checkpoints=3 validation_sentences=50
        average_over=epochs""",
}


def flags_in(name):
    arguments = expand_flagfiles([f"--flagfile={name}.flags"])
    return dict(argument.removeprefix("--").partition("=")[::2] for argument in arguments)


def hyperparameters(name, vocabulary_size=37000):
    values = {column: flags_in(name)[column] for column in COLUMNS if column in flags_in(name)}
    numbers = {name: float(text) if "." in text else int(text) for name, text in values.items()}
    return Hyperparameters(vocabulary_size, **numbers)


FILES = {f"{path.relative_to(FLAGFILES)}": path for path in sorted(FLAGFILES.rglob("*.flags"))}


def test_every_flag_file_of_the_paper_is_a_row_here():
    came_after = {"gpt", "base_sizes", "bert", "bert_sizes", "bert_intents", "bert_slots", "t5"}
    stems = {name.removesuffix(".flags") for name in FILES}
    assert stems == EXPECTED.keys() | OURS.keys() | came_after
    assert EXPECTED.keys() == TABLE_3.keys() | {"parsing", "parsing_semi"}


@pytest.mark.parametrize("name", [*EXPECTED, *OURS])
def test_a_flag_file_has_the_expected_values_and_no_more(name):
    assert flags_in(name) == (EXPECTED[name] if name in EXPECTED else typed(OURS[name]))


def test_a_plain_install_has_what_reads_the_corpus_of_base():
    setup = configparser.ConfigParser()
    setup.read(pathlib.Path(__file__).parents[1] / "setup.cfg")
    required = setup["options"]["install_requires"].split()
    assert flags_in("base")["corpus"] == "tfds"
    assert [name for name in required if name.startswith("tensorflow-datasets>=")]


@pytest.mark.parametrize("name", TABLE_3)
def test_a_flag_file_has_every_value_of_its_row(name):
    *row, thousand_steps, _ = TABLE_3[name]
    hp = hyperparameters(name)
    assert (hp.num_layers, hp.d_model, hp.d_ff, hp.num_heads, *widths(hp)) == tuple(row[:6])
    assert (hp.dropout, hp.label_smoothing) == tuple(row[6:])
    assert (hp.norm, hp.activation) == ("post", "relu")
    assert flags_in(name)["max_steps"] == f"{thousand_steps}000"


@pytest.mark.parametrize("name", COUNTED)
def test_a_row_has_the_paper_s_parameters(name):
    """Within 1 million of the paper's column, if the table of embeddings had 41,000 rows: with
    "about 37000" base has 63.05 million and not 65. Only big is the paper's with 36,000 rows.
    """
    rows = 36_000 if name == "big" else 41_000
    assert millions(hyperparameters(name, rows)) == pytest.approx(TABLE_3[name][-1], abs=1.0)


WIDE = {"table3/c_d_model_1024", "big"}


@pytest.mark.parametrize("name", sorted(set(COUNTED) - WIDE))
def test_a_row_differs_from_base_by_what_the_paper_s_column_says(name):
    """With 37,000 pieces. The two rows that are 1,024 wide differ by what the number of pieces is
    off: -2.2 and +3.1 million.
    """
    difference = millions(hyperparameters(name)) - millions(hyperparameters("base"))
    assert difference == pytest.approx(TABLE_3[name][-1] - 65, abs=1.0)


def test_control_values_as_wide_as_keys_would_not_be_row_b():
    hp = hyperparameters("table3/b_d_k_16")
    narrow = Hyperparameters(37000, d_k=16, d_v=16)
    assert millions(hp) - millions(narrow) == pytest.approx(7.08, abs=0.01)
    assert abs(millions(narrow) - millions(hyperparameters("base")) + 7) > 1


def test_the_formula_gives_a_model_s_number_of_parameters():
    sizes = {"num_layers": 2, "d_model": 8, "d_ff": 12, "num_heads": 2, "d_k": 3}
    count = Transformer(vocabulary_size=11, **sizes).count_params()
    assert count == pytest.approx(millions(Hyperparameters(11, **sizes)) * 1e6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["base", "big"])
def test_base_and_big_are_built_for_real(name):
    hp = hyperparameters(name)
    model = Transformer(hp)
    assert model.count_params() == round(millions(hp) * 1e6)
    attention = model.decoder.layers[0].cross_attention
    shapes = [tuple(weight.shape) for weight in attention.weights]
    assert shapes == [(hp.d_model, hp.num_heads * 64)] * 3 + [(hp.num_heads * 64, hp.d_model)]
    assert len(model.encoder.layers) == len(model.decoder.layers) == 6


# Flags of the machine, which a flag file leaves to the command line: it says what is learned.
OF_MACHINE = {"distribution", "tpu", "accumulate", "mixed_precision"}


def machine_flags(path):
    """Flags of the machine in a flag file and in those that it includes."""
    arguments = expand_flagfiles([f"--flagfile={path}"])
    return OF_MACHINE & {argument.lstrip("-").partition("=")[0] for argument in arguments}


@pytest.mark.parametrize("name", FILES)
def test_a_flag_file_has_no_flag_of_the_machine(name):
    assert machine_flags(FILES[name]) == set()
    assert {*EVERY_FLAG} >= OF_MACHINE


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
