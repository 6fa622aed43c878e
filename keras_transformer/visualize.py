"""Draw what a model does, such as its attention (Vaswani et al. 2017, figures 3 to 5).

python -m keras_transformer.visualize --picture=head --model=runs/home_assistant_en_de
--line="Turn off the lights." --output=head.svg

It needs matplotlib: the extra `plots`.
"""

from keras_transformer import flags
from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.flags.of_commands import ModelToUse, Output
from keras_transformer.training.options import Seed
from keras_transformer.visualization.attention_pictures import Lines, Maps, Matrix
from keras_transformer.visualization.charts import Curves, LearningRates
from keras_transformer.visualization.head_maps import Heads
from keras_transformer.visualization.hypotheses import Hypotheses
from keras_transformer.visualization.length_charts import Lengths
from keras_transformer.visualization.patch_maps import Patches
from keras_transformer.visualization.position_maps import Positions
from keras_transformer.visualization.theme import ThemeOptions
from pipelines.options import Options, option

# Each class declares options; its `measure` returns a function that draws in a `Theme`.
PICTURES = {
    "attention": Maps,
    "head": Lines,
    "alignment": Matrix,
    "heads": Heads,
    "positions": Positions,
    "n_best": Hypotheses,
    "learning_rate": LearningRates,
    "curves": Curves,
    "lengths": Lengths,
    "patches": Patches,
}


class PictureChoice(Options):
    """Picture."""

    picture: str | None = option(
        None,
        "Picture to draw. "
        + " ".join(f"{name}: {kind.title()}." for name, kind in PICTURES.items()),
        choices=tuple(PICTURES),
    )


PICTURE = (PictureChoice, Lines, Heads, LearningRates, Patches)
SECTIONS = (*PICTURE, ModelToUse, ThemeOptions, DecodingOptions, Seed, Output)


def main(FLAGS):
    from keras_transformer.visualization.picture_file import form_of, write_picture

    if not FLAGS.picture:
        raise ValueError(f"--picture is missing: one of {', '.join(PICTURES)}.")
    form_of(FLAGS.output)
    flags.require_output(FLAGS)
    picture = PICTURES[FLAGS.picture].of(flags.values(FLAGS, *PICTURE))
    if FLAGS.picture == "learning_rate":
        draw = picture.measure({text: _schedule(text) for text in FLAGS.schedules})
    else:
        draw = picture.measure(flags.required(FLAGS, "model"), flags.decoding_options(FLAGS))
    write_picture(FLAGS.output, draw, FLAGS.theme)


def _schedule(text):
    """Return the arguments of `training.optimizer.schedule` that a recipe names."""
    from keras_transformer.flags.recipes import recipe

    values = recipe(text)
    return {
        "name": values["schedule"],
        "d_model": values["d_model"],
        "warmup_steps": values["warmup_steps"],
        "scale": values["learning_rate_scale"],
        "peak": values["learning_rate"],
        "total_steps": values["max_steps"],
    }


if __name__ == "__main__":
    flags.run(main, SECTIONS)
