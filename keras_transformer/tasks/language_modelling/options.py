"""Options of language models: texts of one language, and how they are continued."""

from keras_transformer.saved_models.options import ExportPrecision, Format
from keras_transformer.tasks.options import (
    OF_ONE_LANGUAGE,
    ONE_STACK,
    SEARCH,
    Registered,
    TextBatches,
)
from pipelines.options import like

SEARCH_OF_TEXT = like(SEARCH, without=("coverage_penalty", "protect_all", "blockwise"))
TASKS = {
    "language_modelling": Registered(
        "LanguageModelling",
        "to continue text of one language",
        place=3,
        options=(*OF_ONE_LANGUAGE, TextBatches, ONE_STACK, SEARCH_OF_TEXT),
        export_options=(SEARCH_OF_TEXT, ExportPrecision, Format),
    )
}
