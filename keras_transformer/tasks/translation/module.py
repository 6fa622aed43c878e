"""The translator as one graph, strings in, strings out (Vaswani et al. 2017, section 6.1)."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from keras_transformer.decoding import DecodingOptions
from keras_transformer.decoding.lengths import MAX_SOURCE_LENGTH
from keras_transformer.decoding.remembered_options import (
    LANGUAGES,
    decoding_flags,
    kept_in,
    options_of_run,
)
from keras_transformer.inference.language_labels import labels_of
from keras_transformer.inference.model_graphs import IDS, AttentionGraphs, Graphs, traced
from keras_transformer.inference.text_module import TEXT, TextModule, cut, pieces_of
from keras_transformer.models import EncoderDecoder, Ensemble, model_of
from keras_transformer.tasks.translation.request_options import functions_of_requests
from pipelines import vocabularies
from pipelines.special_ids import PAD
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.vocabulary import Vocabulary

REFERENCE = tf.TensorSpec([None], tf.string, name="reference")
BLANK = r"[\pZ\p{Cc}\p{Cf}]*"


class TranslationModule(TextModule):
    """A `TextModule` from sentences to translations. `score` also takes the input reference. And

    translate        options beam_size, length_penalty, length_penalty_form ("": as exported),
                     max_length (0: as exported), num_hypotheses, and of a model of many
                     languages source_language and target_language ("": as exported) ->
                     translations and scores (B, n)
    blockwise        -> the same as by greedy search (B,), of a model of --block_size
    align            reference -> source_pieces (B, S), target_pieces (B, T), and attention to the
                     source (B, N, h, T, S)

    If the attribute `output` is "tree", the outputs are `tree` and `trees`. A model without
    attention, such as an ensemble, has no `align`. An export that samples has no `translate`.
    """

    output = "translation"
    outputs = "translations"
    does = "strings in, strings out"
    heading = "A translator"
    model_class = staticmethod(model_of)

    def __init__(
        self,
        model: EncoderDecoder | Ensemble,
        vocabulary: Vocabulary | SeparateVocabularies,
        options: DecodingOptions | None = None,
    ):
        options = options or DecodingOptions(**self.default_options)
        super().__init__(model, vocabulary, options, "translation")
        self.check(options)
        self.labels = labels_of(vocabulary, options)
        # The number of first tokens that name languages.
        self._labelled = 1 if self.labels else 0
        self._graphs = AttentionGraphs(model) if model.gives_attention else Graphs(model)
        self.encode = self._graphs.encode
        self._search_as_exported = traced(
            lambda text, prefixes: self.search_for_terms(self.options.search(), text, prefixes),
            tf.TensorSpec([None], tf.string),
            IDS,
        )
        prefix = tf.TensorSpec([None], tf.string, name="prefix")
        self.translate = traced(self._translate, TEXT)
        self.translate_in_detail = traced(self._translate_in_detail, TEXT, prefix)
        self.score = traced(self._score, TEXT, REFERENCE)
        self.gives_attention = model.gives_attention
        if self.gives_attention:
            self.attention = traced(self._attention, TEXT, REFERENCE)
            self.align = traced(self._align, TEXT, REFERENCE)
        # The numbers of tokens of strings (B,), without a cut.
        self.source_lengths = traced(lambda text: self.source_tokens(text).row_lengths(), TEXT)
        self.target_lengths = traced(
            lambda reference: self.target_tokens(reference).row_lengths(), REFERENCE
        )

    def functions(self):
        functions = {**super().functions(), "serving_default": self.translate}
        if self.has_blocks:
            functions["blockwise"] = traced(self._blockwise, TEXT)
        if not self.options.samples:
            functions |= functions_of_requests(self)
        if self.gives_attention:
            functions["align"] = self.align
        return functions

    def facts(self):
        languages = {"languages": sorted(self.labels.ids)} if self.labels else {}
        return {**super().facts(), **languages}

    def languages(self, corpus):
        return (
            f"{corpus['source_language']} to {corpus['target_language']}" if corpus else "unknown"
        )

    def rows(self, card):
        return {"languages": self.languages(card.get("corpus")), **super().rows(card)}

    def score_rows(self, scores):
        if not scores:
            return {"test set": "unknown", "signature of BLEU": "unknown"}
        return {
            "test set": f"BLEU {scores['bleu']}, chrF {scores['chrf']} ({scores['weights']})",
            "signature of BLEU": scores.get("bleu_signature", "unknown"),
        }

    @classmethod
    def of_model(cls, model, folder, values):
        """Make the module of a run's model, which decodes by flags, else by the run's options."""
        options = decoding_options(values, cls.defaults(folder.read_description()))
        return cls(model, vocabularies.load(folder.path), options)

    @classmethod
    def defaults(cls, description: Mapping[str, Any]) -> dict[str, Any]:
        """Return a run's arguments of `DecodingOptions`, for the rest the defaults of its task."""
        return {**cls.default_options, **kept_in(description)}

    @classmethod
    def check(cls, options: DecodingOptions) -> None:
        """Refuse options that this kind of module cannot have."""
        if options.constrained:
            raise ValueError(
                "`constrained` is for parsers: there are no rules for a translation. Received: "
                "constrained=True. Leave it out."
            )

    def _translate(self, text):
        """Translate strings (B,); blank ones give "", and sources are cut after 1,024 tokens."""
        ids, _, text = self._search_as_exported(text, tf.zeros([tf.size(text), 0], tf.int32))
        return {self.output: self.target_text(ids[:, 0], text)}

    def _blockwise(self, text):
        """Translate strings (B,) as greedy search does, in fewer steps."""
        ids, _, text = self.search_for_terms(self.options.greedy(blockwise=True).search(), text)
        return {self.output: self.target_text(ids[:, 0], text)}

    def _translate_in_detail(self, text, prefix):
        """Translate strings (B,), each translation beginning with a prefix (B,), which may be "".

        Return translations and scores (B, n), best first, -inf where there are fewer; and pieces,
        EOS included and "" after it, with the model's log P of each, 0 after EOS, (B, n, L).
        """
        tokens = self.target_tokenizer.tokenize(self._as_target_of(text, prefix))
        prefixes = tokens[:, :-1].to_tensor(default_value=PAD)
        hypotheses, scores, text = self._search_as_exported(text, prefixes)
        shape = tf.shape(hypotheses)
        source = tf.repeat(self.source_ids(text).to_tensor(default_value=PAD), shape[1], axis=0)
        rows = tf.reshape(hypotheses, [shape[0] * shape[1], shape[2]])
        return {
            "translations": self.target_texts(hypotheses, text),
            "scores": scores,
            "pieces": self.target_pieces(hypotheses[:, :, self._labelled :]),
            "log_probabilities": tf.reshape(self._graphs.log_probabilities(source, rows), shape)[
                :, :, self._labelled :
            ],
        }

    def _score(self, text, reference):
        """Return log P(Y | X), in nats, and |Y|, EOS included, of strings (B,) and their
        translations (B,), both cut after 1,024 tokens.
        """
        source, target = self._padded(text, reference)
        log_probabilities = self._graphs.log_probabilities(source, target)[:, self._labelled :]
        target = target[:, self._labelled :]
        return {
            "log_probability": tf.reduce_sum(log_probabilities, axis=1),
            "tokens": tf.math.count_nonzero(target != PAD, axis=1, dtype=tf.int32),
        }

    def _attention(self, text, reference):
        """Return the pieces of strings (B,) and of their translations (B,), labels and EOS
        included, and the attention weights of all layers: encoder (B, N, h, S, S), decoder
        (B, N, h, T, T) and cross (B, N, h, T, S). Row t belongs to the step of target piece t.
        """
        source, target = self._padded(text, reference)
        return {
            "source_pieces": pieces_of(self.source_tokenizer, source),
            "target_pieces": self.target_pieces(target),
            **self._graphs.attention(source, target),
        }

    def _align(self, text, reference):
        attention = self.attention(text, reference)
        first = self._labelled
        return {
            "source_pieces": attention["source_pieces"][:, first:],
            "target_pieces": attention["target_pieces"][:, first:],
            "attention": attention["cross"][..., first:, first:],
        }

    def search(self, search, text, prefixes=None, limits=None, languages=(None, None)):
        """Search as `TextModule` does, between languages, each strings (1,) or (B,), or None."""
        if not self.labels:
            return super().search(search, text, prefixes, limits)
        source, target = map(self.labels.ids_of, LANGUAGES, languages)
        tokens = cut(self.labels.before(super().source_tokens(text), source, tf.size(text)))
        prefixes = self.labels.before(prefixes, target, tf.size(text))
        return super().search(self.labels.after_label(search), text, prefixes, limits, tokens)

    def begin(self, source, prefixes):
        return self.encode(source.to_tensor(default_value=PAD)), prefixes

    def next_logits(self, text, prefix):
        pieces = tf.strings.split(prefix)[:, :MAX_SOURCE_LENGTH]
        ids = pieces.with_flat_values(self.target_tokenizer.string_to_id(pieces.flat_values))
        ids = self._after_label(ids, "target_language")
        source = self.source_ids(text).to_tensor(default_value=PAD)
        return self._graphs.next_logits(source, ids.to_tensor(default_value=PAD))

    def _padded(self, text, reference):
        """Return the ids of sentences and of their translations, (B, S) and (B, T)."""
        source = self.source_ids(text).to_tensor(default_value=PAD)
        target = self.target_ids(self._as_target_of(text, reference))
        return source, target.to_tensor(default_value=PAD)

    def _as_target_of(self, text, reference):
        """Replace the protected spans of translations (B,) by the marks that their sources have."""
        if not self.marks:
            return reference
        return self.marks.marked_as(reference, self.marks.marked(text))[0]

    def target_ids(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Return ragged ids (B, None) of translations (B,), as `source_ids`."""
        return cut(self.target_tokens(text))

    def target_tokens(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Return ragged ids of translations (B,); each row ends in EOS."""
        return self._after_label(self.target_tokenizer.tokenize(text), "target_language")

    def source_tokens(self, text):
        return self._after_label(super().source_tokens(text), "source_language")

    def _after_label(self, ids, name):
        labels = self.labels
        return labels.before(ids, labels.ids_of(name), ids.nrows()) if labels else ids

    def target_text(self, ids, text):
        """Return strings as `TextModule` does, but "" where `text` is blank, as in `portable`."""
        is_blank = tf.strings.regex_full_match(text, BLANK)
        return tf.where(is_blank, "", super().target_text(ids, text))


def decoding_options(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> DecodingOptions:
    """Return the options of flags, for the rest the defaults of the task or the run."""
    options = decoding_flags(values)
    if not options.get("samples"):
        # The seed of training is not one of samples.
        options.pop("seed", None)
    return options_of_run(options, defaults)
