"""What each part of a parser adds (Vaswani et al. 2017, section 6.3; Vinyals et al. 2015).

`python -m benchmarks.paper.parsing_study --model_dir=runs/parsing_en` scores the test trees of a
run's treebank: by beams of 1, 4 and 21; repaired, not repaired (outputs that are not well formed
have no brackets), or by a search that is constrained to trees; checkpoints averaged, or the last
alone. It prints how many of the raw outputs are well formed, and recall, precision and F1 by label
for the constrained search with the last beam. `--silver_model_dir=RUN` adds a parser that learned
from silver trees too.

`--sizes=1000,5000,0 --data_dir=TREES` adds F1 against the number of trees to learn from, drawn by a
fixed seed; 0 is all. `--silver=5000` adds a parser that learns from the trees that the parser of
5,000 finds for all other training sentences, and from the 5,000. Each is a training of its own (see
`parser_trainings`). What is done is not done again, trees are kept in parts of 200, and
what was kept with other flags is refused.
"""

import collections
import pathlib

from absl import app, flags

from benchmarks.paper import parser_trainings
from benchmarks.paper.parser_trainings import SILVER, SIZES, study_folder
from benchmarks.paper.parsing_in_parts import loader, parsed_in_parts, weights_in
from benchmarks.tables import print_table
from keras_transformer.startup import start_tensorflow

MODEL_DIR = flags.DEFINE_string("model_dir", None, "Run of --task=parsing.")
SILVER_MODEL = flags.DEFINE_string(
    "silver_model_dir", None, "Run that learned from silver trees too."
)
SPLIT = flags.DEFINE_enum("split", "test", ["valid", "test"], "Split to parse.")
BEAMS = flags.DEFINE_list("beams", ["1", "4", "21"], "Beam sizes.")
LENGTH_PENALTY = flags.DEFINE_float("length_penalty", 0.3, "Exponent of the length penalty.")
SENTENCES = flags.DEFINE_integer("sentences", 0, "Number of first trees to parse; 0: all.")
BATCH_TOKENS = flags.DEFINE_integer("batch_tokens", 1024, "Source tokens parsed at once.")
LABELS = 15
REPAIRED = "repaired"


def gold_of(description):
    from pipelines.corpora import treebank

    return treebank.gold_trees(description["corpus"], SPLIT.value)[: SENTENCES.value or None]


def parsed(name, gold, model, options):
    """Trees of a system, and what `parsed_in_parts` tells of them."""
    from pipelines.corpora.treebank import words_of

    settings = {
        "model": str(pathlib.Path(model).resolve()),
        "weights": weights_in(model),
        "split": SPLIT.value,
        "sentences": SENTENCES.value,
        **options,
    }
    path = study_folder() / f"{file_of(name)}.json"
    load = loader(model, BATCH_TOKENS.value, **options)
    return parsed_in_parts(path, settings, list(map(words_of, gold)), load)


def measured(found, gold):
    """What was parsed, with its scores."""
    from keras_transformer.evaluation import parser_score

    return {**found, **parser_score.measure(found["trees"], gold)}


def not_repaired(found, gold):
    """The same with no brackets where the raw output was not well formed. The gold brackets stay in
    recall.
    """
    from pipelines.trees import Tree

    bare = [str(Tree("", tuple(right.preterminals()))) for right in gold]
    kept = zip(found["trees"], found["well_formed"], bare, strict=True)
    trees = [tree if is_well_formed else flat for tree, is_well_formed, flat in kept]
    return measured({**found, "trees": trees}, gold)


def line(name, found):
    sentences = found["all"]["sentences"]
    return (
        name,
        f"{found['short']['f1']:.2f}",
        f"{found['all']['f1']:.2f}",
        f"{found['all']['complete']:.1f}",
        f"{100 * sum(found['well_formed']) / max(sentences, 1):.1f} %",
        f"{sentences / found['seconds']:.1f}",
    )


HEADER = ("parser", "F1, at most 40 words", "F1", "complete", "well formed", "sentences/s")


def systems():
    """By name: the model and its options."""
    from keras_transformer.runs.folder import RunFolder
    from keras_transformer.training import checkpoint

    run = str(RunFolder(MODEL_DIR.value).path)
    every = checkpoint.checkpoints(RunFolder(run).checkpoints)
    if not every:
        raise SystemExit(f"{run} holds no checkpoint. Train it first.")
    found = {}
    for beam in map(int, BEAMS.value):
        # Greedy search has no length penalty.
        options = {"beam_size": beam}
        options |= {"length_penalty": LENGTH_PENALTY.value} if beam > 1 else {}
        found[f"beam {beam}, {REPAIRED}"] = (run, {**options, "constrained": False})
        found[f"beam {beam}, constrained"] = (run, {**options, "constrained": True})
    greedy = {"beam_size": 1, "constrained": False}
    found[f"beam 1, {REPAIRED}, last checkpoint alone"] = (str(every[-1]), greedy)
    if SILVER_MODEL.value:
        found[f"beam 1, {REPAIRED}, with silver trees"] = (SILVER_MODEL.value, greedy)
    return found


def file_of(name):
    """The name of the file that keeps what a system reaches on these trees."""
    trees = f"{SPLIT.value}_{SENTENCES.value or 'all'}"
    run = pathlib.Path(MODEL_DIR.value).name
    return "_".join([run, trees, *name.replace(",", "").split()])


def print_systems(gold):
    """A row for each system. Gives the trees of the constrained search with the last beam."""
    constrained = []

    def rows():
        for name, (model, options) in systems().items():
            found = parsed(name, gold, model, options)
            if options.get("constrained"):
                constrained.append(found)
            yield line(name, measured(found, gold))
            if name.endswith(f", {REPAIRED}"):
                yield line(name.replace(REPAIRED, f"not {REPAIRED}"), not_repaired(found, gold))

    print_table(HEADER, rows())
    return constrained[-1]


def print_labels(found, gold):
    """Recall, precision and F1 of each label, and what it was taken for."""
    from keras_transformer.evaluation.parser_score import with_leaves_of
    from keras_transformer.evaluation.parseval import brackets
    from pipelines.trees import parse

    counts = collections.defaultdict(collections.Counter)
    confused = collections.defaultdict(collections.Counter)
    for right, text in zip(gold, found["trees"], strict=True):
        wanted = collections.Counter(brackets(right))
        given = collections.Counter(brackets(with_leaves_of(right, parse(text))))
        for name, bag in (("gold", wanted), ("test", given), ("matched", wanted & given)):
            for bracket, count in bag.items():
                counts[bracket.label][name] += count
        left = collections.defaultdict(list)
        for bracket in (given - wanted).elements():
            left[bracket[1:]].append(bracket.label)
        for bracket in (wanted - given).elements():
            labels = left[bracket[1:]]
            confused[bracket.label][labels.pop() if labels else "nothing"] += 1
    frequent = sorted(counts, key=lambda label: -counts[label]["gold"])[:LABELS]
    print_table(
        ("label", "in gold", "recall", "precision", "F1", "missed, most often for"),
        [_of_label(label, counts[label], confused[label]) for label in frequent],
    )


def _of_label(label, count, confused):
    recall = 100 * count["matched"] / max(count["gold"], 1)
    precision = 100 * count["matched"] / max(count["test"], 1)
    f1 = 2 * recall * precision / (recall + precision) if count["matched"] else 0.0
    told = ", ".join(f"{other} {number}" for other, number in confused.most_common(3))
    return (label, count["gold"], *(f"{figure:.1f}" for figure in (recall, precision, f1)), told)


def main(_):
    if SIZES.value or SILVER.value:
        parser_trainings.check()
        parser_trainings.print_sizes()
    if MODEL_DIR.value:
        start_tensorflow()
        from keras_transformer.runs.folder import RunFolder

        gold = gold_of(RunFolder(MODEL_DIR.value).read_description())
        print_labels(print_systems(gold), gold)


if __name__ == "__main__":
    app.run(main)
