"""Draw what a model does, such as its attention (Vaswani et al. 2017, figures 3 to 5).

python -m keras_transformer.visualize --picture=head --model=runs/home_assistant_en_de
--line="Turn off the lights." --output=head.svg

It needs matplotlib: the extra `plots`.
"""

import functools

from keras_transformer import flags

GROUPS = ("model_path", "visualize", "theme", "search", "seed", "files", "output")
WITHOUT_MODEL = ("learning_rate",)


def main(FLAGS):
    from keras_transformer.tasks.attending import attend_of
    from keras_transformer.tasks.sentence_examination import validation_of
    from keras_transformer.visualization.picture_file import form_of, write_picture
    from keras_transformer.visualization.pictures import PICTURES

    if not FLAGS.picture:
        raise ValueError(f"--picture is missing: one of {', '.join(PICTURES)}.")
    form_of(FLAGS.output)
    values = flags.values(FLAGS, "visualize", "files")
    if FLAGS.picture not in WITHOUT_MODEL:
        values["model"] = flags.required_model(FLAGS)
    else:
        values["recipes"] = {text: _schedule(text) for text in FLAGS.schedules}
    asked = {**flags.defaults("evaluate", "tokenize"), **flags.values(FLAGS, "files")}
    readers = {
        "attend_of": attend_of,
        "validation_of": functools.partial(validation_of, values=asked, asker="heads --ablate"),
    }
    options = flags.decoding_options(FLAGS)
    draw = PICTURES[FLAGS.picture](**values, **readers, options=options)
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
