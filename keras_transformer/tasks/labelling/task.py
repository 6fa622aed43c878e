"""Classification of texts and tagging of words by an encoder-only model, fine-tuned from a masked
language model or trained from scratch (Devlin et al. 2019, "BERT: Pre-training of Deep
Bidirectional Transformers for Language Understanding", sections 4.1 and 5.3).
"""

import abc
import collections
import functools

import numpy as np

from keras_transformer.evaluation import label_score, span_score
from keras_transformer.inference.held_out_text import held_out_text
from keras_transformer.inference.loading import refuse_precision
from keras_transformer.inference.text_reader import TextReader
from keras_transformer.models.text_encoders import BODY
from keras_transformer.runs.model_path import ModelPath
from keras_transformer.tasks.labelling.module import LABELS_FILE, LabelModule, TagModule, names_of
from keras_transformer.tasks.score import Scorer
from keras_transformer.tasks.task import Score
from keras_transformer.tasks.text_task import KEPT, SHOWN, TextEncoding, in_rows
from pipelines.batches import labelled_texts
from pipelines.corpora.parallel_text import ParallelText
from pipelines.dropped import Dropped
from pipelines.whole_files import write_json


class LabelScorer(Scorer):
    """Scores labels of the texts of a split, or of --source_file by --reference_file."""

    useless = ("metrics", "confidence", "baseline_file", "evalb_parameters")
    because = "is for translations, and {model} gives labels: leave it out."

    def __init__(self, description, model, values):
        super().__init__(description, model, values)
        self._dropped = Dropped()
        self._text = self._labelled(values)
        place = functools.partial(self._text.place, side="the text")
        self.check(self._text, description["labels"]["names"], place)

    def examine(self, loading, at_once):
        if version := ModelPath.of(self.model).version:
            refuse_precision(version, loading["precision"])
            reader = TextReader.load(self.model)
        else:
            reader = TextReader.of(self.module(loading["precision"]))
        return self.measure(reader, self._text)[1]

    @staticmethod
    def check(text, names, place):
        """Refuse labels that the model cannot give."""
        labelled_texts.numbers_of(text.targets, names, place)

    @staticmethod
    def usable(corpus):
        """Return a corpus without the texts that the task drops."""
        return corpus

    @staticmethod
    def measure(reader, text):
        """Return the answers of a `TextReader` to texts, and their scores."""
        labels = reader.labels(text.sources)
        return labels, label_score.measure(labels, text.targets)

    @staticmethod
    def summary(numbers):
        """Return the scores of `measure` as text for people."""
        return (
            f"{numbers['accuracy']:.1%} of {numbers['texts']:,} texts get their label, macro F1 "
            f"{numbers['macro_f1']}"
        )

    def table(self, numbers):
        dropped = any(self._dropped.values())
        left_out = [f"dropped of all splits: {self._dropped.describe()}"] if dropped else []
        return "\n".join([self.summary(numbers), *left_out])

    def _labelled(self, values):
        """Load texts and their labels."""
        files = [values["source_file"], values["reference_file"]]
        if any(files):
            texts, labels = held_out_text(self.description, self.model, values["split"], *files)
            numbered = enumerate(zip(texts, labels, strict=True), 1)
            rows = [(number, *pair) for number, pair in numbered if all(pair)]
            if not rows:
                raise ValueError(f"{files[0]} and {files[1]} hold no labelled text. Fill them.")
            return ParallelText.from_rows(rows, files[1])
        whole = self.corpus("texts and labels by --source_file and --reference_file")
        corpus = self.usable(whole)
        self._dropped = Dropped(corpus.dropped)
        self._dropped.subtract(whole.dropped)
        return getattr(corpus, values["split"])


class TagScorer(LabelScorer):
    """Scores tags of words; a line of labels has a tag for each word."""

    summary = staticmethod(span_score.summary)
    usable = staticmethod(labelled_texts.without_unequal)

    @staticmethod
    def check(text, names, place):
        labelled_texts.check_tags(text.sources, text.targets, names, place)
        if not any(map(str.split, text.targets)):
            raise ValueError(f"{place(0)} and all after it have no word to tag. Pass other text.")

    @staticmethod
    def measure(reader, text):
        tags = reader.tags(text.sources)
        return tags, span_score.measure(tags, [row.split() for row in text.targets])


class Labelling(TextEncoding):
    """Learn the targets of a corpus as labels of its sources.

    `--init_from` copies embeddings and encoder of a run of the task masking, without its head.

    Attributes:
        names: the labels of the training split, from `labels_of`.
        kind_of_labels: what they are called.
    """

    kind_of_labels = "labels"
    carried_over = BODY

    @classmethod
    def fixed(cls, description):
        """Return all parts but `tie_embeddings`, which has no effect; earlier versions wrote it."""
        hyperparameters = {**description["hyperparameters"], "tie_embeddings": "three_way"}
        return super().fixed({**description, "hyperparameters": hyperparameters})

    @staticmethod
    def labels_in(target):
        """Return the labels in a line of the targets."""
        return [target]

    @staticmethod
    def labels_of(targets):
        """Return all labels that lines of targets, or similar lines, may have."""
        return set(targets)

    @abc.abstractmethod
    def labelled(self, sources, targets, place):
        """Make `Examples` of lines and targets; `place` names the place of a line, for errors."""

    def introduce(self):
        """Print what is trained on, and refuse text that could not be scored later."""
        corpus = self.corpus
        for split, side in labelled_texts.SIDES.items():
            text = getattr(corpus, split)
            place = functools.partial(text.place, side=f"the {side} side")
            self.scorer.check(text, self.names, place)
        super().introduce()
        targets = corpus.train.targets
        # A label that none of --labelled_examples has counts too.
        counts = collections.Counter(
            {label: 0 for target in targets for label in self.labels_in(target)}
        )
        for number in self._rows_to_train():
            counts.update(self.labels_in(targets[number]))
        rarest, count = min(counts.items(), key=lambda pair: (pair[1], pair[0]))
        print(
            f"{len(self.names)} {self.kind_of_labels}, the rarest {rarest}: {count:,} of "
            f"{counts.total():,} {self.labels} to train"
        )

    def write_files(self, folder):
        """Write the vocabulary, and the labels of the training split."""
        train = self.corpus.train
        if train.sources == train.targets:
            raise ValueError(
                f"--task={self.name} needs labels. Received: corpus={self.corpus.name}, which has "
                "none. Pass another --corpus, such as text_files."
            )
        self._rows_to_train()  # It may refuse --labelled_examples.
        super().write_files(folder)
        write_json(folder.path / LABELS_FILE, sorted(self.labels_of(train.targets)))

    def read_files(self, folder):
        super().read_files(folder)
        self.names = names_of(folder)

    def description(self):
        description = super().description()
        description["labels"] = {"names": self.names}
        description["training"]["labelled_examples"] = self.values["labelled_examples"]
        return description

    def examples(self, split):
        if split == "valid":
            valid = self.corpus.valid
            place = functools.partial(valid.place, side="the validation side")
            return self.labelled(valid.sources, valid.targets, place)
        train = self.corpus.train
        chosen = self._rows_to_train()
        return self.labelled(
            [train.sources[number] for number in chosen],
            [train.targets[number] for number in chosen],
            lambda index: train.place(chosen[index], "the training side"),
        )

    def _rows_to_train(self):
        """Return the numbers of the texts to train on, drawn at random."""
        total = len(self.corpus.train)
        count = self.values["labelled_examples"] or total
        if count > total:
            raise ValueError(
                f"--labelled_examples must be at most {total}, the texts to train on. Received: "
                f"{count}."
            )
        return np.random.default_rng(self.values["seed"]).permutation(total)[:count]

    def score(self, module):
        """Score the labels of the test set, and show some of its texts."""
        test = self.corpus.test
        answers, numbers = self.scorer.measure(TextReader.of(module), test)
        lines = [labels if isinstance(labels, str) else " ".join(labels) for labels in answers]
        shown = list(zip(test.sources, lines, test.targets, strict=True))[:SHOWN]
        names = ("text", "tags" if self.kind_of_labels == "tags" else "label", "reference")
        report = [self.scorer.summary(numbers), *in_rows(names, shown)]
        return Score(numbers, report, list(test.sources[:KEPT]))


class Classification(Labelling):
    """Learn a label for a text: the intents of `--corpus=intents`, or of `--corpus=text_files`."""

    name = "classification"
    labels = "texts"
    scorer = LabelScorer
    module_class = LabelModule

    def labelled(self, sources, targets, place):
        longest = self.values["max_train_length"]
        numbers = labelled_texts.numbers_of(targets, self.names, place)
        ids = labelled_texts.tokenized(sources, self.vocabulary, longest)
        return labelled_texts.examples(ids, numbers, self.vocabulary)

    def description(self):
        description = super().description()
        description["labels"]["pooling"] = self.values["pooling"]
        return description


class Tagging(Labelling):
    """Learn a tag for each word: the slots of `--corpus=intents --target_language=slots`, or files
    of `--corpus=text_files`, a text in each line, with a tag for each of its words. Tags are "B-"
    and a name where a span begins, "I-" and the name where it continues, else "O".
    """

    name = "tagging"
    labels = "words"
    kind_of_labels = "tags"
    scorer = TagScorer
    module_class = TagModule
    labels_in = staticmethod(str.split)

    @functools.cached_property
    def corpus(self):
        """The text, without lines that lack a tag for some word or have too many."""
        return labelled_texts.without_unequal(super().corpus, self.values.get("strict", False))

    @staticmethod
    def labels_of(targets):
        tags = {tag for row in targets for tag in row.split()}
        # A name may have spans of one word in one split and of several in another.
        return tags | {f"{kind}{tag[1:]}" for tag in tags if tag[1:2] == "-" for kind in "BI"}

    def labelled(self, sources, targets, place):
        longest = self.values["max_train_length"]
        return labelled_texts.tagged_examples(
            sources, targets, self.names, self.vocabulary, longest, place
        )
