"""Options of parsers: those of translators, and whether trees are constrained."""

from keras_transformer.decoding.options import DecodingOptions
from keras_transformer.saved_models.options import Format, Precision
from keras_transformer.tasks.options import Registered
from keras_transformer.tasks.translation.options import OF_TRANSLATORS
from pipelines.options import like

SEARCH = like(DecodingOptions, without=("protect_all", "forbidden"))
TASKS = {
    "parsing": Registered(
        "Parsing",
        "to parse sentences, from a treebank",
        place=2,
        options=(*OF_TRANSLATORS, SEARCH),
        export_options=(SEARCH, Precision, Format),
        makes_sentences=True,
    )
}
