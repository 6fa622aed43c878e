"""All pictures, by the name that `--picture` has for them. Each class has the options of its
picture and a method `measure`, which returns a function of a `Theme` that draws it.
"""

import dataclasses

from keras_transformer.visualization.attention_pictures import Lines, Maps, Matrix
from keras_transformer.visualization.charts import Curves, LearningRates
from keras_transformer.visualization.head_maps import Heads
from keras_transformer.visualization.hypotheses import Hypotheses
from keras_transformer.visualization.length_charts import Lengths
from keras_transformer.visualization.patch_maps import Patches
from keras_transformer.visualization.position_maps import Positions
from pipelines.options import Options, option

PICTURES = {
    "attention": Maps,
    "head": Lines,
    "alignment": Matrix,
    "heads": Heads,
    "positions": Positions,
    "n_best": Hypotheses,
    "learning_rate": LearningRates,
    "curves": Curves,
    "lengths": Lengths,
    "patches": Patches,
}


def _sentence(kind):
    return f"{kind.title()[0].lower()}{kind.title()[1:]}."


@dataclasses.dataclass(frozen=True)
class PictureChoice(Options):
    """Picture."""

    picture: str | None = option(
        None,
        "Picture to draw. "
        + " ".join(f"{name}: {_sentence(kind)}" for name, kind in PICTURES.items()),
        choices=tuple(PICTURES),
    )
