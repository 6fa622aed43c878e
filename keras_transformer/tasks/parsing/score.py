"""Labelled bracketing of a parser's trees (Vaswani et al. 2017, section 6.3 and table 4)."""

import pathlib

from keras_transformer.evaluation import parser_score
from keras_transformer.evaluation.evalb_parameters import COLLINS, read_parameters
from keras_transformer.tasks.score import SentenceExamination
from pipelines.corpora import treebank
from pipelines.dropped import Dropped
from pipelines.trees import plain

# Flags of `evaluate` that count words of translations.
OF_TRANSLATIONS = ("metrics", "confidence", "baseline_file", "source_file")


class ParsingExamination(SentenceExamination):
    """The sentences of trees: of a split, or of the file --reference_file."""

    measure = "labelled F1 of sentences of any length"
    unit = "F1"

    def __init__(self, description, model, values):
        super().__init__(description, model, values)
        if given := [name for name in OF_TRANSLATIONS if values[name]]:
            raise ValueError(
                f"--{given[0]} is for translations, and {model} parses: leave it out. Trees of "
                "your own go into --reference_file; their words are parsed."
            )
        self._parameters = _parameters(values["evalb_parameters"])
        self._dropped = Dropped()
        self._gold = _gold(description, model, values, self._dropped)
        self.sources = [treebank.words_of(tree) for tree in self._gold]

    def keep_first(self, count):
        self.sources = self.sources[:count]
        self._gold = self._gold[:count]

    def quality(self, answers):
        return self._measured(answers)["all"]["f1"]

    def score(self, answers):
        return {"sentences": len(self.sources), "scores": self._measured(answers)}

    def _measured(self, answers):
        return parser_score.measure(answers, self._gold, self._parameters)

    def table(self, found):
        left_out = [f"dropped: {self._dropped.describe()}"] if self._dropped else []
        return "\n".join([parser_score.table(found["scores"]), *left_out])


def _parameters(name):
    if not name:
        return COLLINS
    return read_parameters(pathlib.Path(name).read_text(encoding="utf-8"), name)


def _gold(description, model, values, dropped):
    """The trees to parse again, plain, each with words. Damaged ones of a split, which training
    left out, are counted; in a file of one's own they are refused.
    """
    if name := values["reference_file"]:
        if found := [tree for tree in map(plain, treebank.read_trees(name)) if tree]:
            return found
        raise ValueError(
            f"--reference_file must hold trees with words. Received: {name}, which has none. Check "
            "the file."
        )
    if "corpus" not in description:
        raise ValueError(
            f"{model} does not say what it was trained on: pass trees by --reference_file."
        )
    return treebank.gold_trees(description["corpus"], values["split"], dropped)
