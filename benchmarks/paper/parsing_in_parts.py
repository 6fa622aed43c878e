"""Sentences parsed in parts, each of which is kept as soon as it is there: a study that is killed
loses one part.
"""

import hashlib
import json
import os
import pathlib
import re
import time
from collections.abc import Callable, Mapping, Sequence

from benchmarks.tables import refuse_others
from pipelines.trees import parse
from pipelines.trees.linearization import to_symbols
from pipelines.whole_files import write_json

PART = 200


def parsed_in_parts(
    path: pathlib.Path,
    settings: Mapping,
    sentences: Sequence[str],
    loaded: Callable[[], tuple[Callable, str]],
) -> dict:
    """Parse sentences, or those that a file does not hold yet.

    Args:
        path: JSON file of what is done.
        settings: what the trees depend on, JSON; kept with them.
        sentences: words between spaces.
        loaded: gives a parser, a function from sentences to lists of `Hypothesis`, and what stands
            for words in its symbols, a key of `linearization.LEAVES`. Called if a part is missing.

    Returns:
        `trees`, in brackets; `well_formed`, whether nothing had to be repaired, for each; `seconds`
        for all.

    Raises:
        SystemExit: if the file is of other settings.
    """
    found = {"settings": dict(settings), "trees": [], "well_formed": [], "seconds": 0.0}
    if path.is_file():
        found = json.loads(path.read_text(encoding="utf-8"))
        refuse_others(path, found.get("settings", {}), settings)
    parser = None
    while (done := len(found["trees"])) < len(sentences):
        if parser is None:
            parser, leaves = loaded()
            parser(sentences[:1])
        start = time.perf_counter()
        best = [hypotheses[0] for hypotheses in parser(sentences[done : done + PART])]
        found["seconds"] += time.perf_counter() - start
        found["trees"] += [one.text for one in best]
        found["well_formed"] += [is_well_formed(one, leaves) for one in best]
        write_json(path, found)
    return found


def loader(model: str | os.PathLike, batch_tokens: int, **options) -> Callable:
    """What `parsed_in_parts` loads a parser by.

    Args:
        model: as `Translator.load` takes it.
        batch_tokens: source tokens parsed at once.
        options: those of the search.
    """

    def load():
        from keras_transformer import Translator
        from keras_transformer.startup import spread_over_cores

        at_once = spread_over_cores()
        parser = Translator.load(model, **options)
        leaves = parser.description["corpus"].get("tree_leaves") or "xx"

        def answer(sentences):
            # In detail, for the symbols as the model wrote them.
            return parser.translate_in_detail(
                sentences, batch_tokens=batch_tokens, batches_at_once=at_once
            )

        return answer, leaves

    return load


def weights_in(model: str | os.PathLike) -> str:
    """Which weights a parser has: the name of their file and a digest of it."""
    from keras_transformer.startup import start_tensorflow

    start_tensorflow()
    from keras_transformer.runs.folder import RunFolder

    path = pathlib.Path(model)
    path = path if path.suffix == ".npz" else RunFolder(path).newest_weights()
    with open(path, "rb") as file:
        return f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()[:16]}"


def is_well_formed(hypothesis, leaves: str) -> bool:
    """Whether nothing has to be repaired: the symbols of the tree are those that were written."""
    pieces = "".join(hypothesis.pieces).removesuffix("</s>")
    text = re.sub(r"(?:<0x[0-9A-F]{2}>)+", _character, pieces)
    return text.replace("▁", " ").strip(" ").split(" ") == to_symbols(
        parse(hypothesis.text), leaves
    )


def _character(match):
    """What pieces of single bytes stand for."""
    return bytes.fromhex(re.sub("<0x|>", "", match[0])).decode(errors="replace")
