"""BLEU and other metrics of translations, with intervals and beside another system (Vaswani et al.
2017, section 6.1).
"""

from keras_transformer.evaluation import metrics, table, tokenized_text
from keras_transformer.evaluation.significance import compare
from keras_transformer.inference.held_out_text import held_out_text
from keras_transformer.tasks.score import SentenceExamination
from pipelines.corpora import line_files


class TranslationExamination(SentenceExamination):
    """Sources and their references."""

    unit = "BLEU"

    def __init__(self, description, model, values):
        super().__init__(description, model, values)
        files = (values["source_file"], values["reference_file"])
        self._values = values
        self.sources, self._references = held_out_text(description, model, values["split"], *files)
        language = description.get("corpus", {}).get("target_language", "")
        self._tokenize = metrics.tokenizer_of(language, values["tokenize"])
        self._chosen = (values["metrics"], self._tokenize, language)
        self._baseline = _read_baseline(values["baseline_file"], self._references)
        self._metrics = metrics.choose(*self._chosen)
        self._bleu = metrics.bleu_of(self._tokenize)

    @property
    def measure(self):
        # sacrebleu knows its signature once it has counted.
        self.quality(self._references)
        return f"BLEU, {self._bleu.get_signature()}"

    def keep_first(self, count):
        self.sources = self.sources[:count]
        self._references = self._references[:count]

    def quality(self, answers):
        return self._bleu.corpus_score(answers, [self._references]).score

    def warning(self):
        return tokenized_text.warning(self._references, self._tokenize)

    def score(self, answers):
        confidence = self._values["confidence"]
        found = {
            "sentences": len(self.sources),
            "scores": metrics.measure(self._metrics, answers, self._references, confidence),
        }
        if self._baseline:
            found["comparison"] = self._compare(answers)
        return found

    def _compare(self, answers):
        test = self._values["significance"]
        systems = (metrics.choose(*self._chosen), self._baseline, answers, self._references)
        told = {"baseline": self._values["baseline_file"], "test": test}
        return {**told, "scores": compare(*systems, test)}

    def table(self, found):
        lines = [f"{found['sentences']:,} sentences", table.of_scores(found["scores"])]
        if comparison := found.get("comparison"):
            told = (comparison["scores"], comparison["baseline"], comparison["test"])
            lines += ["", table.of_comparison(*told)]
        return "\n".join(lines)


def _read_baseline(name, references):
    if not name:
        return None
    lines = line_files.read_lines(name)
    if len(lines) != len(references):
        raise ValueError(
            f"--baseline_file must have a line for each reference. Received: {name} with "
            f"{len(lines):,} lines, and {len(references):,} references. Translate the same text."
        )
    return lines
