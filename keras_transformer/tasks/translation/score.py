"""BLEU and other metrics, with intervals and differences (Vaswani et al. 2017, section 6.1)."""

from keras_transformer.evaluation import metrics, table
from keras_transformer.inference.held_out_text import held_out_text
from keras_transformer.tasks.score import SentenceScorer
from pipelines import line_files


class TranslationScorer(SentenceScorer):
    """Scores translations of sources by their references."""

    unit = "BLEU"

    def __init__(self, description, model, values):
        super().__init__(description, model, values)
        files = (values["source_file"], values["reference_file"])
        self._values = values
        self.sources, self.references = held_out_text(description, model, values["split"], *files)
        language = description.get("corpus", {}).get("target_language", "")
        self._tokenize = metrics.tokenizer_of(language, values["tokenize"])
        self._choice = (values["metrics"], self._tokenize, language)
        self._baseline = None
        if name := values["baseline_file"]:
            lines = self._baseline = line_files.read_lines(name)
            if len(lines) != len(self.references):
                raise ValueError(
                    "--baseline_file must have a line for each reference. Received: "
                    f"{name} with {len(lines):,} lines, and {len(self.references):,} references. "
                    "Translate the same text."
                )
        self._metrics = metrics.choose(*self._choice)
        self._bleu = metrics.bleu_of(self._tokenize)

    @property
    def measure(self):
        # sacrebleu has a signature only after it has scored something.
        self.quality(self.references)
        return f"BLEU, {self._bleu.get_signature()}"

    def quality(self, answers):
        return self._bleu.corpus_score(answers, [self.references]).score

    def warning(self):
        return metrics.warning(self.references, self._tokenize)

    def score(self, answers):
        confidence = self._values["confidence"]
        numbers = {
            "sentences": len(self.sources),
            "scores": metrics.measure(self._metrics, answers, self.references, confidence),
        }
        if not self._baseline:
            return numbers
        test = self._values["significance"]
        # Metrics that have been used must not be used again.
        systems = (metrics.choose(*self._choice), self._baseline, answers, self.references)
        comparison = {
            "baseline": self._values["baseline_file"],
            "test": test,
            "scores": metrics.compare(*systems, test),
        }
        return {**numbers, "comparison": comparison}

    def table(self, numbers):
        lines = [f"{numbers['sentences']:,} sentences", table.of_scores(numbers["scores"])]
        if comparison := numbers.get("comparison"):
            parts = (comparison["scores"], comparison["baseline"], comparison["test"])
            lines += ["", table.of_comparison(*parts)]
        return "\n".join(lines)
