"""Labelled bracketing of a parser's trees (Vaswani et al. 2017, section 6.3 and table 4)."""

import pathlib

from keras_transformer.evaluation import parser_score
from keras_transformer.evaluation.parseval import COLLINS, read_parameters
from keras_transformer.tasks.score import SentenceScorer
from pipelines.corpora import treebank
from pipelines.dropped import Dropped
from pipelines.trees import plain


class TreeScorer(SentenceScorer):
    """The sentences of trees: of a split, or of the file --reference_file. Damaged trees of a
    split, which training left out, are counted; in a file of one's own they are refused.
    """

    useless = ("metrics", "confidence", "baseline_file", "source_file")
    because = (
        "is for translations, and {model} parses: leave it out. Trees of your own go into "
        "--reference_file; their words are parsed."
    )
    measure = "labelled F1 of sentences of any length"
    unit = "F1"

    def __init__(self, description, model, values):
        super().__init__(description, model, values)
        name = values["evalb_parameters"]
        self._parameters = (
            read_parameters(pathlib.Path(name).read_text(encoding="utf-8"), name)
            if name
            else COLLINS
        )
        self._dropped = Dropped()
        self.references = self._gold(values)
        self.sources = [treebank.words_of(tree) for tree in self.references]

    def _gold(self, values):
        """The trees to parse again, plain, each with words."""
        if name := values["reference_file"]:
            if trees := [tree for tree in map(plain, treebank.read_trees(name)) if tree]:
                return trees
            raise ValueError(
                f"--reference_file must hold trees with words. Received: {name}, which has none. "
                "Check the file."
            )
        return self.corpus(
            "trees by --reference_file",
            lambda **settings: treebank.gold_trees(settings, values["split"], self._dropped),
        )

    def quality(self, answers):
        return self._measured(answers)["all"]["f1"]

    def score(self, answers):
        return {"sentences": len(self.sources), "scores": self._measured(answers)}

    def _measured(self, answers):
        return parser_score.measure(answers, self.references, self._parameters)

    def table(self, numbers):
        left_out = [f"dropped: {self._dropped.describe()}"] if self._dropped else []
        return "\n".join([parser_score.table(numbers["scores"]), *left_out])
