"""Write what a SavedModel predicts for each line: `python -m keras_transformer.predict
--model=saved_models/intents < texts.txt > labels.txt`.

A text model gives labels, tags or filled masks. For an image model each line is the path of a PNG
or JPEG file. It calls a signature of the SavedModel, as a server does.
"""

import json

from keras_transformer import flags
from keras_transformer.flags.of_commands import (
    JsonOutput,
    Lines,
    ModelToUse,
    Output,
    PredictOptions,
)

SECTIONS = (ModelToUse, PredictOptions, Lines, JsonOutput, Output)


def main(FLAGS):
    from keras_transformer import streams
    from keras_transformer.inference.predictor import Predictor

    model = flags.required(FLAGS, "model")
    flags.check_stream(FLAGS)
    flags.require_output(FLAGS)
    predictor = Predictor.load(model, FLAGS.signature)
    predict = _objects if FLAGS.json else Predictor.lines
    if FLAGS.stream:
        streams.answer_lines(lambda line: streams.as_lines(predict(predictor, [line])))
        return
    streams.write_lines(FLAGS.output, predict(predictor, streams.read_lines(FLAGS.input)))


def _objects(predictor, lines):
    return [json.dumps(outputs, ensure_ascii=False) for outputs in predictor.objects(lines)]


if __name__ == "__main__":
    flags.run(main, SECTIONS)
