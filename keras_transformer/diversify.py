"""More training pairs from the same pairs: models of both directions translate the text that they
have learned from (data diversification, Nguyen et al. 2020).

`python -m keras_transformer.diversify --forward=runs/en_de --backward=runs/de_en
--output_dir=diversified` writes, of the training text of the run `forward`,

- back.*: what `backward` makes of each target sentence, beside that sentence: the best of its beam
  search, and --drawn_translations drawn at --drawing_temperature;
- forth.*: each source sentence, and the best that `forward` makes of it;
- mixture.json: the pairs of the corpus, back.* with a weight by which an epoch has as many of them
  as of the corpus, and forth.* with a weight of one half.

A synthetic pair that the corpus has already is left out. `python -m keras_transformer.train
--corpus=mixture --mixture=diversified/mixture.json` learns from all of them.
"""

import dataclasses
import pathlib

from keras_transformer import flags
from keras_transformer.flags.of_commands import DecodeTokens
from keras_transformer.prepare import Prepared
from pipelines.options import Options, option


@dataclasses.dataclass(frozen=True)
class BothDirections(Options):
    """Models of both directions."""

    forward: str | None = option(None, "Run from source to target.", path="folder")
    backward: str | None = option(None, "Run from target to source.", path="folder")
    drawn_translations: int = option(2, "Translations drawn of each target.", at_least=1)
    drawing_temperature: float = option(0.7, "Temperature at which they are drawn.", at_least=1e-9)


SECTIONS = (BothDirections, Prepared, DecodeTokens)


def main(FLAGS):
    from keras_transformer.runs.folder import RunFolder
    from pipelines import corpora
    from pipelines.prepare.diversification import write_mixture

    forward = flags.required(FLAGS, "forward")
    flags.required(FLAGS, "backward")
    if not FLAGS.output_dir:
        raise ValueError("--output_dir is missing: the folder to write, such as diversified.")
    corpus = RunFolder(forward).read_description()["corpus"]
    if corpus["name"] != "text_files":
        raise ValueError(f"--forward must be a run of text_files. Received: {corpus['name']}.")
    keys = ("source_language", "target_language", "data_dir", "prefixes")
    text = {key: corpus[key] for key in keys}
    train = corpora.load("text_files", **text).train
    back, forth = _synthetic_pairs(FLAGS, train)
    write_mixture(pathlib.Path(FLAGS.output_dir), text, len(train), back, forth)
    print(f"{len(back):,} pairs of backward translation, {len(forth):,} of forward translation")


def _synthetic_pairs(FLAGS, train):
    """Pairs of backward and of forward translation."""
    from pipelines.prepare.diversification import new_pairs

    count = FLAGS.drawn_translations
    drawing = {"samples": count, "num_hypotheses": count, "seed": 1}
    drawing["temperature"] = FLAGS.drawing_temperature
    tokens = FLAGS.decode_tokens
    best = hypotheses(FLAGS.backward, train.targets, tokens)
    drawn = hypotheses(FLAGS.backward, train.targets, tokens, **drawing)
    of_targets = [[*one[:1], *others] for one, others in zip(best, drawn, strict=True)]
    of_sources = [one[:1] for one in hypotheses(FLAGS.forward, train.sources, tokens)]
    return (
        new_pairs(train.sources, train.targets, of_targets, backward=True),
        new_pairs(train.sources, train.targets, of_sources, backward=False),
    )


def hypotheses(model, lines, decode_tokens, **options):
    """What a model makes of lines: all that are asked for, best first."""
    from keras_transformer.inference.translator import Translator
    from keras_transformer.startup import spread_over_cores

    at_once = spread_over_cores()
    found = Translator.load(model, **options).translate_in_detail(
        lines, batch_tokens=decode_tokens, batches_at_once=at_once
    )
    return [[one.text for one in ways] for ways in found]


if __name__ == "__main__":
    flags.run(main, SECTIONS)
