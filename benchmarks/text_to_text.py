"""One model of four tasks beside a model of each (Raffel et al. 2020, section 3.5.2): translation
both ways, parsing, and spans to restore.

`python -m benchmarks.text_to_text --text_dir=multi30k --trees_dir=craft` trains t5.flags on the
mixture of all four, and the same sizes on each alone, for as many epochs: so each task is seen for
as many tokens by its own model as by the joint one. It prints for each task the score of both on
its validation split: BLEU, labelled F1, and the share of spans restored word by word. What is done
is not done again, what was interrupted goes on, and what was kept with other flags is refused. The
command

    python -m benchmarks.text_to_text --scored=FOLDER

scores one run, in a process of its own.
"""

import dataclasses
import json
import pathlib
from collections.abc import Callable

from absl import app, flags

from benchmarks.kept import keep_settings
from benchmarks.side_by_side import run_alone, side_by_side, train_alone
from benchmarks.tables import print_table
from pipelines.whole_files import write_json

DATA = flags.DEFINE_string("text_dir", None, "Folder of Multi30k: train.*, val.*, en and de.")
TREES = flags.DEFINE_string("trees_dir", None, "Folder of a treebank.")
RUN_DIR = flags.DEFINE_string("runs", "runs/text_to_text", "Folder of the runs.")
SCORED = flags.DEFINE_string("scored", None, "Folder of a run: score it, in this very process.")
EPOCHS = flags.DEFINE_integer("epochs", 10, "Passes over each task's text.", lower_bound=1)
SENTENCES = flags.DEFINE_integer("sentences", 500, "Validation sentences of a task to score.")
SIZES = flags.DEFINE_string("sizes", "", "Further flags of all trainings, such as sizes.")
JOINT = "joint"


def _bleu(answers, sources, targets):
    from keras_transformer.evaluation import bleu

    return bleu.score(answers, targets)["bleu"]


def _f1(answers, sources, targets):
    """Of trees made of symbols, whatever they are."""
    from keras_transformer.evaluation import parser_score
    from pipelines.trees import escaped
    from pipelines.trees.linearization import from_symbols

    def trees(written):
        return [
            from_symbols(symbols.split(), list(map(escaped, source.split())))
            for symbols, source in zip(written, sources, strict=True)
        ]

    return parser_score.measure(list(map(str, trees(answers))), trees(targets))["all"]["f1"]


def _restored(answers, sources, targets):
    """Percentage of the spans that come back word by word."""
    from pipelines.corpora.spans import spans_of

    right = 0
    count = 0
    for answer, target in zip(answers, targets, strict=True):
        found = spans_of(answer)
        for name, words in spans_of(target).items():
            if words:
                right += found.get(name) == words
                count += 1
    return 100 * right / max(count, 1)


@dataclasses.dataclass(frozen=True)
class Member:
    """A task: its part of the mixture, and how answers are scored."""

    corpus: str
    source: str
    target: str
    score: Callable
    measure: str

    def described(self, name):
        """What the file of the mixture says of it."""
        is_treebank = self.corpus == "treebank"
        member = {
            "corpus": self.corpus,
            "data_dir": str(pathlib.Path(TREES.value if is_treebank else DATA.value).resolve()),
            "source_language": self.source,
            "target_language": self.target,
            "tag": f"<{name}>",
        }
        return member if is_treebank else {**member, "prefixes": ["train", "val", "val"]}


MEMBERS = {
    "2de": Member("text_files", "en", "de", _bleu, "BLEU"),
    "2en": Member("text_files", "de", "en", _bleu, "BLEU"),
    "parse": Member("treebank", "en", "trees", _f1, "labelled F1"),
    "restore": Member("spans", "en", "spans", _restored, "spans restored, %"),
}


def main(_):
    if SCORED.value:
        score(pathlib.Path(SCORED.value))
        return
    if not (DATA.value and TREES.value):
        raise app.UsageError("--text_dir and --trees_dir are missing: Multi30k and a treebank.")
    folder = pathlib.Path(RUN_DIR.value)
    folder.mkdir(parents=True, exist_ok=True)
    # The longest first.
    names = [JOINT, "parse", "2de", "2en", "restore"]
    jobs = [(folder, name) for name in names]
    found = dict(zip(names, side_by_side(train, jobs), strict=True))
    rows = [row(name, found[name][name], found[JOINT][name]) for name in MEMBERS]
    print_table(["task", "measure", "its own model", "the joint model", "share"], rows)


def row(name, own, joint):
    """What a task's own model and the joint one reach. Of nothing there is no share."""
    share = f"{joint / own:.1%}" if own else "-"
    return [name, MEMBERS[name].measure, f"{own:.2f}", f"{joint:.2f}", share]


def train(core, folder, name):
    """Train and score a run on one core, if that is not done yet."""
    run = folder / name
    members = MEMBERS if name == JOINT else {name: MEMBERS[name]}
    described = [one.described(key) for key, one in members.items()]
    settings = {
        "corpora": described,
        "epochs": EPOCHS.value,
        "sizes": SIZES.value,
        "sentences": SENTENCES.value,
    }
    keep_settings(run, settings)
    scores = run / "score.json"
    if not scores.is_file():
        mixture = folder / f"{name}.json"
        write_json(mixture, {"corpora": described})
        train_alone(run, _flags(mixture), core)
        own = [f"--scored={run}", f"--sentences={SENTENCES.value}"]
        run_alone(run, ["benchmarks.text_to_text", *own], core)
    found = json.loads(scores.read_text(encoding="utf-8"))
    print(name, found, flush=True)
    return found


def _flags(mixture):
    return [
        *("--flagfile=t5.flags", f"--mixture={mixture}"),
        *(f"--max_epochs={EPOCHS.value}", "--max_minutes=100000", "--norelease"),
        *("--validation_sentences=0", "--max_length=+300", *SIZES.value.split()),
    ]


def score(run: pathlib.Path) -> None:
    """Write what a run reaches on the validation split of each of its tasks."""
    from keras_transformer import Translator
    from pipelines import corpora
    from pipelines.corpora.mixture import members

    translator = Translator.load(run, beam_size=4, max_length="+300", min_length=1)
    found = {}
    for member in members(translator.description["corpus"]["mixture"]):
        name = member.pop("tag").strip("<>")
        text = corpora.load(member.pop("corpus"), **member).valid
        sources = text.sources[: SENTENCES.value]
        answers = translator.translate([f"<{name}> {source}" for source in sources])
        found[name] = MEMBERS[name].score(answers, sources, text.targets[: SENTENCES.value])
    write_json(run / "score.json", found)


if __name__ == "__main__":
    app.run(main)
