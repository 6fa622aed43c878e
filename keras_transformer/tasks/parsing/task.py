"""Constituency parsing: from words to brackets, labelled F1 (Vaswani et al. 2017, section 6.3)."""

import functools

from keras_transformer.evaluation import parser_score
from keras_transformer.evaluation.parseval import COLLINS, read_parameters
from keras_transformer.inference.translator import Translator
from keras_transformer.tasks.corpus_settings import language
from keras_transformer.tasks.parsing.module import ParsingModule
from keras_transformer.tasks.score import SentenceScorer
from keras_transformer.tasks.task import Score
from keras_transformer.tasks.text_task import KEPT, TRIAL, in_rows
from keras_transformer.tasks.translation.task import UNMEASURED, Translation
from pipelines.corpora import treebank
from pipelines.dropped import Dropped
from pipelines.line_files import read_lines


class TreeScorer(SentenceScorer):
    """Scores trees by those of a split, or of --reference_file. Damaged trees of a split, which
    training left out, are counted; in a file they are refused.
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
        self._parameters = read_parameters("\n".join(read_lines(name)), name) if name else COLLINS
        self._dropped = Dropped()
        if name := values["reference_file"]:
            trees = treebank.trees_of_file(name)
        else:
            trees = self.corpus(
                "trees by --reference_file",
                lambda **settings: treebank.gold_trees(settings, values["split"], self._dropped),
            )
        self.references = trees
        self.sources = [treebank.words_of(tree) for tree in trees]

    def quality(self, answers):
        return self._measured(answers)["all"]["f1"]

    def score(self, answers):
        return {"sentences": len(self.sources), "scores": self._measured(answers)}

    def _measured(self, answers):
        return parser_score.measure(answers, self.references, self._parameters)

    def table(self, numbers):
        left_out = [f"dropped: {self._dropped.describe()}"] if self._dropped else []
        return "\n".join([parser_score.table(numbers["scores"]), *left_out])


SHOWN = 3
SHORT_ENOUGH_TO_SHOW = 80


class Parsing(Translation):
    """Translate sentences into the symbols of their trees, which become trees over the words."""

    name = "parsing"
    is_portable = False
    quality = "f1"
    upper_targets = False
    unmeasured = UNMEASURED.format("F1")
    trial = TRIAL % "parse"
    scorer = TreeScorer
    module_class = ParsingModule

    def __init__(self, values):
        super().__init__({**values, "target_language": treebank.LANGUAGE})
        treebank.treebanks_of(self.corpus_settings)

    @classmethod
    def default_model_dir(cls, values):
        return f"runs/parsing_{language(values, 'source_language')}"

    def description(self):
        """Return the description without the tokenizer of BLEU, which trees do not need."""
        parts = super().description()
        del parts["evaluation"]
        return parts

    def doubt(self):
        return None

    @functools.cached_property
    def _gold(self):
        return treebank.gold_trees(self.corpus_settings, "valid")

    def validation_quality(self, translations):
        """Return labelled F1 of the trees of the first validation sentences, of any length."""
        return parser_score.measure(translations, self._gold[: len(translations)])["all"]["f1"]

    def score(self, module):
        """Parse the test set by the options, and measure PARSEVAL."""
        sources = self.corpus.test.sources
        trees = Translator(module).translate(sources)
        numbers = parser_score.measure(trees, treebank.gold_trees(self.corpus_settings, "test"))
        beam_size = self.decoding.search().beam_size
        shown = [
            (sentence, tree)
            for sentence, tree in zip(sources, trees, strict=True)
            if len(sentence) <= SHORT_ENOUGH_TO_SHOW and len(tree) <= 2 * SHORT_ENOUGH_TO_SHOW
        ]
        report = [
            f"beam {beam_size}: F1 {numbers['short']['f1']} of sentences of at most "
            f"{numbers['cutoff']} words, {numbers['all']['f1']} of all",
            *parser_score.table(numbers).splitlines(),
            *in_rows(("sentence", "tree"), shown[:SHOWN]),
        ]
        return Score({"beam_size": beam_size, **numbers}, report, sources[:KEPT])

    @classmethod
    def convert(cls, folder, path, values):
        """Refuse any format, because no other engine makes trees of symbols."""
        return super(Translation, cls).convert(folder, path, values)
