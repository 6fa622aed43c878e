"""Options of classification and tagging (Devlin et al. 2019, "BERT: Pre-training of Deep
Bidirectional Transformers for Language Understanding", sections 4.1 and 5.3).
"""

from keras_transformer.saved_models.options import Precision
from keras_transformer.tasks.options import OF_ENCODERS, ONE_STACK, Registered
from pipelines.options import Options, like, option


class LabellingOptions(Options):
    """Labelled examples."""

    labelled_examples: int | None = option(
        None, "Number of labelled examples to train on, drawn by --seed. Default: all.", at_least=1
    )


class ClassificationOptions(Options):
    """Classification."""

    pooling: str = option(
        "first",
        "What classifies a text: the state of its first token, as in BERT, or the mean of all "
        "states.",
        choices=("first", "mean"),
    )


MODEL_OF_LABELS = like(ONE_STACK, without=("tie_embeddings",))
TASKS = {
    "classification": Registered(
        "Classification",
        "to classify texts",
        place=5,
        options=(*OF_ENCODERS, LabellingOptions, ClassificationOptions, MODEL_OF_LABELS),
        export_options=(Precision,),
    ),
    "tagging": Registered(
        "Tagging",
        "to tag words",
        place=6,
        options=(*OF_ENCODERS, LabellingOptions, MODEL_OF_LABELS),
        export_options=(Precision,),
    ),
}
