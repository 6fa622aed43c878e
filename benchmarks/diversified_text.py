"""More training pairs from the same pairs: models of both directions translate the text that they
have learned from (data diversification, Nguyen et al. 2020).

`python -m benchmarks.diversified_text --forward=runs/en_de --backward=runs/de_en
--output_dir=diversified` writes, of the training text of the run `forward`,

- back.*: what `backward` makes of each target sentence, beside that sentence: the best of its beam
  search, and --samples drawn at --temperature;
- forth.*: each source sentence, and the best that `forward` makes of it;
- mixture.json: the pairs of the corpus, back.* with a weight by which an epoch has as many of them
  as of the corpus, and forth.* with a weight of one half.

A synthetic pair that the corpus has already is left out. `python -m keras_transformer.train
--corpus=mixture --mixture=diversified/mixture.json` learns from all of them.
"""

import pathlib

from absl import app, flags

from keras_transformer.startup import start_tensorflow
from pipelines import corpora
from pipelines.whole_files import write_json, write_whole

FORWARD = flags.DEFINE_string("forward", None, "Run from source to target.", required=True)
BACKWARD = flags.DEFINE_string("backward", None, "Run from target to source.", required=True)
OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "Folder to write.", required=True)
SAMPLES = flags.DEFINE_integer("samples", 2, "Translations drawn of each target.", lower_bound=1)
TEMPERATURE = flags.DEFINE_float("temperature", 0.7, "Temperature of what is drawn.")
BATCH_TOKENS = flags.DEFINE_integer("batch_tokens", 2048, "Source tokens decoded at once.")
FORWARD_WEIGHT = 0.5


def hypotheses(model: str, lines: list[str], **options) -> list[list[str]]:
    """What a model makes of lines: all that are asked for, best first."""
    from keras_transformer import Translator
    from keras_transformer.startup import spread_over_cores

    at_once = spread_over_cores()
    translator = Translator.load(model, **options)
    found = translator.translate_in_detail(
        lines, batch_tokens=BATCH_TOKENS.value, batches_at_once=at_once
    )
    return [[one.text for one in ways] for ways in found]


def new_pairs(sources, targets, ways_of, backward):
    """Synthetic pairs that are not those of the corpus.

    Args:
        sources, targets: of the corpus.
        ways_of: for each pair, translations of its target (backward) or of its source.
        backward: which of the two.
    """
    pairs = []
    for source, target, ways in zip(sources, targets, ways_of, strict=True):
        for way in dict.fromkeys(ways):
            pair = (way, target) if backward else (source, way)
            if way.strip() and pair != (source, target):
                pairs.append(pair)
    return pairs


def write_pairs(folder, prefix, corpus, pairs):
    """Two files of lines, and the member of a mixture that trains on them alone."""
    languages = {key: corpus[key] for key in ("source_language", "target_language")}
    for language, lines in zip(languages.values(), zip(*pairs, strict=True), strict=True):
        text = "".join(f"{line}\n" for line in lines).encode()
        path = folder / f"{prefix}.{language}"
        write_whole(path, lambda temporary, text=text: temporary.write_bytes(text))
    prefixes = [prefix, None, None]
    return {"corpus": "text_files", **languages, "data_dir": ".", "prefixes": prefixes}


def main(_):
    start_tensorflow()
    from keras_transformer.runs.folder import RunFolder

    corpus = RunFolder(FORWARD.value).read_description()["corpus"]
    if corpus["name"] != "text_files":
        raise SystemExit(f"--forward must be a run of text_files. Received: {corpus['name']}.")
    keys = ("source_language", "target_language", "data_dir", "prefixes")
    text = {key: corpus[key] for key in keys}
    train = corpora.load("text_files", **text).train
    folder = pathlib.Path(OUTPUT_DIR.value)
    folder.mkdir(parents=True, exist_ok=True)
    best = hypotheses(BACKWARD.value, train.targets)
    drawing = {"samples": SAMPLES.value, "num_hypotheses": SAMPLES.value}
    drawn = hypotheses(
        BACKWARD.value, train.targets, temperature=TEMPERATURE.value, seed=1, **drawing
    )
    ways = [[*one[:1], *others] for one, others in zip(best, drawn, strict=True)]
    back = new_pairs(train.sources, train.targets, ways, backward=True)
    ways = [one[:1] for one in hypotheses(FORWARD.value, train.sources)]
    forth = new_pairs(train.sources, train.targets, ways, backward=False)
    back_member = write_pairs(folder, "back", corpus, back)
    forth_member = write_pairs(folder, "forth", corpus, forth)
    weight = round(len(train) / len(back), 3)
    members = [
        {"corpus": "text_files", **text, "data_dir": str(pathlib.Path(text["data_dir"]).resolve())},
        {**back_member, "weight": weight},
        {**forth_member, "weight": FORWARD_WEIGHT},
    ]
    write_json(folder / "mixture.json", {"corpora": members})
    print(f"{len(back):,} pairs of backward translation, {len(forth):,} of forward translation")


if __name__ == "__main__":
    app.run(main)
