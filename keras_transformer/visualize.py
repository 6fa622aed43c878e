"""Draw what a model does, such as its attention (Vaswani et al. 2017, figures 3 to 5).

python -m keras_transformer.visualize --picture=head --model=runs/home_assistant_en_de
--line="Turn off the lights." --output=head.svg

It needs matplotlib: the extra `plots`.
"""

from keras_transformer import flags

PICTURE = (
    "picture",
    "picture_of_attention",
    "picture_of_heads",
    "picture_of_learning_rates",
    "picture_of_patches",
    "files",
)
GROUPS = (*PICTURE, "model_path", "theme", "search", "seed", "output")


def main(FLAGS):
    from keras_transformer.visualization.picture_file import form_of, write_picture
    from keras_transformer.visualization.pictures import PICTURES

    if not FLAGS.picture:
        raise ValueError(f"--picture is missing: one of {', '.join(PICTURES)}.")
    form_of(FLAGS.output)
    picture = PICTURES[FLAGS.picture].of(flags.values(FLAGS, *PICTURE))
    if FLAGS.picture == "learning_rate":
        draw = picture.measure({text: _schedule(text) for text in FLAGS.schedules})
    else:
        draw = picture.measure(flags.required_model(FLAGS), flags.decoding_options(FLAGS))
    write_picture(FLAGS.output, draw, FLAGS.theme)


def _schedule(text):
    """The arguments of `training.schedule.schedule` that a recipe gives."""
    from keras_transformer.flags.recipes import recipe

    values = recipe(text, "optimizer", "model", "training")
    return {
        "name": values["schedule"],
        "d_model": values["d_model"],
        "warmup_steps": values["warmup_steps"],
        "scale": values["learning_rate_scale"],
        "peak": values["learning_rate"],
        "total_steps": values["max_steps"],
    }


if __name__ == "__main__":
    flags.run(main, GROUPS)
