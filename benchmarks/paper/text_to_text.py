"""One model for many tasks (Raffel et al. 2020, T5), beside a model for each that had its share of
the updates: `python -m benchmarks.paper.text_to_text --runs=ALL,GERMAN,PARSER`, runs of `t5.flags`.

Each run is scored on the first test lines of each member of its own mixture: a translation's BLEU,
a tree's labelled F1, the share of lines whose spans are all restored, and of spans.
"""

from absl import app, flags

from benchmarks.tables import print_table
from keras_transformer.evaluation import bleu, parser_score
from keras_transformer.inference.translator import Translator
from pipelines.corpora import Mixture, spans, treebank
from pipelines.trees.linearization import from_symbols

RUNS = flags.DEFINE_list("runs", None, "Runs to score.", required=True)
SENTENCES = flags.DEFINE_integer("sentences", 300, "Test lines of each member.", 1)


def restored(found: list[str], wanted: list[str]) -> str:
    """The shares, in percent, of lines and of spans that are restored word for word."""
    pairs = [
        (spans.spans_of(one), spans.spans_of(other))
        for one, other in zip(found, wanted, strict=True)
    ]
    lines = 100 * sum(one == other for one, other in pairs) / len(pairs)
    each = [
        one.get(name) == words for one, other in pairs for name, words in other.items() if words
    ]
    return f"{lines:.1f} % of lines, {100 * sum(each) / len(each):.1f} % of spans"


def parsed(found: list[str], trees: list) -> str:
    """Labelled F1 of the trees that symbols describe."""
    brackets = [
        str(from_symbols(line.split(), tree.words)) for line, tree in zip(found, trees, strict=True)
    ]
    return f"F1 {parser_score.measure(brackets, trees)['all']['f1']:.2f}"


def scores(path: str) -> list[list]:
    """A row of the table for each member of a run's mixture."""
    translator = Translator.load(path)
    mixture = translator.description["corpus"]["mixture"]
    rows = []
    for member in Mixture.of({"mixture": mixture}).members():
        corpus = member.corpus.held_out()
        sources = corpus.test.sources[: SENTENCES.value]
        targets = corpus.test.targets[: SENTENCES.value]
        found = translator.translate([f"{member.tag} {line}" for line in sources])
        if corpus.target_language == spans.LANGUAGE:
            score = restored(found, targets)
        elif corpus.target_language == treebank.LANGUAGE:
            score = parsed(found, member.corpus.trees("test")[: SENTENCES.value])
        else:
            score = f"BLEU {bleu.score(found, targets)['bleu']:.2f}"
        rows.append([path, member.tag, score])
    return rows


def main(_):
    print_table(["run", "task", "score"], [row for path in RUNS.value for row in scores(path)])


if __name__ == "__main__":
    app.run(main)
