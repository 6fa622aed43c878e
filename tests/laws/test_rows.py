"""Law: what can be chosen by name has its tests in a file that this table names. A new corpus,
task, search, picture or family of imports without a row fails. Layers and models have tables of
laws of their own (`test_layers`, `test_models`).
"""

import collections
import inspect
import pathlib
import pkgutil
import re

import pytest

from keras_transformer import decoding
from keras_transformer.imports.hugging_face import FAMILIES
from keras_transformer.tasks import TASKS
from keras_transformer.visualize import PICTURES
from pipelines.corpora import CORPORA

TESTS = pathlib.Path(__file__).parents[1]
SEARCHES = [
    name
    for module in pkgutil.iter_modules(decoding.__path__, f"{decoding.__name__}.")
    for name, kind in inspect.getmembers(pkgutil.resolve_name(module.name), inspect.isclass)
    if kind.__module__ == module.name and name.endswith(("Search", "Sampling", "Sweep"))
]
REGISTERED = {
    "corpora": CORPORA,
    "families": FAMILIES,
    "pictures": PICTURES,
    "searches": SEARCHES,
    "tasks": TASKS,
}
# A file of tests/, and the names that it tests.
ROWS = {
    "corpora": {
        "pipelines/corpora/test_every_corpus.py": "lines reverse spans text_files treebank",
        "pipelines/corpora/test_home_assistant_wheel.py": "home_assistant",
        "pipelines/corpora/test_intents.py": "intents",
        "pipelines/corpora/test_mixture.py": "mixture",
        "pipelines/corpora/test_text_files.py": "tmx tsv",
        "pipelines/corpora/test_tfds.py": "tfds",
        "pipelines/test_preparation.py": "records",
    },
    "families": {f"imports/test_{name}.py": name for name in FAMILIES},
    "pictures": {
        "integration/test_visualize.py": "alignment attention curves head heads learning_rate "
        "lengths n_best positions",
        "integration/test_vision.py": "patches",
    },
    "searches": {
        "decoding/test_beam_search.py": "BeamSearch",
        "decoding/test_blockwise.py": "BlockwiseSearch",
        "decoding/test_greedy.py": "GreedySearch PenaltySweep ShrinkingBeamSearch "
        "StayingBeamSearch UntilFullBeamSearch UntilWorseBeamSearch",
        "decoding/test_numpy_search.py": "NumpySearch",
        "decoding/test_sampling.py": "Sampling",
    },
    "tasks": {
        "tasks/pictures/test_pictures.py": "image_classification",
        "tasks/test_language_modelling.py": "language_modelling",
        "tasks/test_parsing.py": "parsing",
        "tasks/test_text_reading.py": "classification masking tagging",
        "tasks/translation/test_translation.py": "translation",
    },
}


def faults(registered, rows):
    """Names without a row, with two rows, without a registered object, or not in their file."""
    counts = collections.Counter(name for names in rows.values() for name in names.split())
    yield from (f"{name}: {counts[name]} rows" for name in registered if counts[name] != 1)
    yield from (f"{name}: nothing has this name" for name in counts if name not in registered)
    for file, names in rows.items():
        words = re.findall(r"\w+", (TESTS / file).read_text(encoding="utf-8").lower())
        yield from (f"{name}: not in {file}" for name in names.split() if name.lower() not in words)


@pytest.mark.parametrize("kind", REGISTERED)
def test_each_has_one_row_and_its_file_names_it(kind):
    assert list(faults(REGISTERED[kind], ROWS[kind])) == []


def test_control_missing_repeated_and_stale_rows_are_reported():
    rows = {"laws/test_rows.py": "tmx gone tsv", "tasks/test_parsing.py": "tsv"}
    assert list(faults(["tmx", "tsv", "new"], rows)) == [
        "tsv: 2 rows",
        "new: 0 rows",
        "gone: nothing has this name",
        "tsv: not in tasks/test_parsing.py",
    ]
