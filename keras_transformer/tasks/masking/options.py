"""Options of masked language modelling (Devlin et al. 2019, "BERT: Pre-training of Deep
Bidirectional Transformers for Language Understanding", section 3.1).
"""

from keras_transformer.saved_models.options import Precision
from keras_transformer.tasks.options import OF_ENCODERS, ONE_STACK, Registered
from pipelines.options import Options, option


class MaskingOptions(Options):
    """Masked pieces."""

    mask_share: float = option(
        0.15,
        "Share of a text's pieces that are predicted. Of these, 80 % are replaced by the mask, "
        "10 % by a random piece, and 10 % are left unchanged.",
        at_least=0.01,
        at_most=1,
    )


TASKS = {
    "masking": Registered(
        "Masking",
        "to predict masked pieces of text",
        place=4,
        options=(*OF_ENCODERS, MaskingOptions, ONE_STACK),
        export_options=(Precision,),
    )
}
