"""What our own flag files say, typed here by hand: the figures of README.md were measured with it.
Those of the paper are in `test_paper`.
"""

import pytest
from command_flags import EVERY_FLAG

from keras_transformer.flagfiles import FLAGFILES, expand_flagfiles

# A word for each flag. Of `make train`, and of the models that are set beside it.
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
SAID = {
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


@pytest.mark.parametrize("name", SAID)
def test_a_flag_file_says_what_was_typed_and_no_more(name):
    arguments = expand_flagfiles([f"--flagfile={name}.flags"])
    parts = (argument.removeprefix("--").partition("=") for argument in arguments)
    # What a word says last holds.
    said = {name: value for name, _, value in parts}
    assert said == dict(word.split("=") for word in SAID[name].split())


# Flags of the machine, which a flag file leaves to the command line: it says what is learned.
ON_WHAT = {"distribution", "tpu", "accumulate", "mixed_precision"}


def on_what(path):
    """Those that a flag file says, with what it includes."""
    arguments = expand_flagfiles([f"--flagfile={path}"])
    return ON_WHAT & {argument.lstrip("-").partition("=")[0] for argument in arguments}


@pytest.mark.parametrize(
    "path", sorted(FLAGFILES.rglob("*.flags")), ids=lambda path: f"{path.relative_to(FLAGFILES)}"
)
def test_a_flag_file_does_not_say_on_what_to_compute(path):
    assert on_what(path) == set()


def test_control_a_flag_file_that_says_it_is_found(tmp_path):
    path = tmp_path / "mine.flags"
    path.write_text("--flagfile=toy.flags\n--accumulate=8\n# --tpu=x\n", encoding="utf-8")
    assert on_what(path) == {"accumulate"}


def test_the_flags_of_the_machine_are_flags():
    assert {*EVERY_FLAG} >= ON_WHAT
