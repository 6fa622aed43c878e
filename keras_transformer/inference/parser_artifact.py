"""What is exported of a parser: sentences in, trees out (Vaswani et al. 2017, section 6.3)."""

from keras_transformer.inference.translator_artifact import TranslatorArtifact


class ParserArtifact(TranslatorArtifact):
    """A `ParsingModule` with the signatures of `served`, and its vocabulary.

    Args:
        module: the `ParsingModule`.
    """

    does = (
        "sentences in, whose words and punctuation stand between spaces; trees in brackets out "
        "(Vaswani et al. 2017, section 6.3)"
    )

    def title(self, card):
        corpus = card.get("corpus")
        return f"A constituency parser, {corpus['source_language'] if corpus else 'unknown'}"

    def score_rows(self, scores):
        if not scores:
            return {"test set": "unknown"}
        return {
            "test set": f"labelled F1 {scores['short']['f1']} of sentences of at most "
            f"{scores['cutoff']} words, {scores['all']['f1']} of all ({scores['weights']})"
        }
