"""More training pairs from the same pairs (data diversification, Nguyen et al. 2020): what models
of both directions make of a text, as files and a mixture.
"""

import pathlib
from collections.abc import Iterable, Mapping, Sequence

from pipelines.whole_files import write_json, write_whole

FORWARD_WEIGHT = 0.5
LANGUAGES = ("source_language", "target_language")


def new_pairs(
    sources: Sequence[str],
    targets: Sequence[str],
    ways_of: Iterable[Sequence[str]],
    backward: bool,
) -> list[tuple[str, str]]:
    """Synthetic pairs that are not those of the corpus; of each pair, `ways_of` has translations of
    its target (backward) or of its source.
    """
    pairs = []
    for source, target, ways in zip(sources, targets, ways_of, strict=True):
        for way in dict.fromkeys(ways):
            pair = (way, target) if backward else (source, way)
            if way.strip() and pair != (source, target):
                pairs.append(pair)
    return pairs


def write_mixture(
    folder: pathlib.Path,
    corpus: Mapping,
    count: int,
    back: Sequence[tuple[str, str]],
    forth: Sequence[tuple[str, str]],
) -> None:
    """Write back.*, forth.* and mixture.json: the pairs of the corpus, backward translations with a
    weight by which an epoch has as many of them, and forward ones with a weight of one half.

    Args:
        folder: of all files.
        corpus: arguments of the corpus text_files.
        count: of its training pairs.
        back, forth: synthetic pairs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    own = {"corpus": "text_files", **corpus}
    own["data_dir"] = str(pathlib.Path(corpus["data_dir"]).resolve())
    members = [
        own,
        {**_member(folder, "back", corpus, back), "weight": round(count / len(back), 3)},
        {**_member(folder, "forth", corpus, forth), "weight": FORWARD_WEIGHT},
    ]
    write_json(folder / "mixture.json", {"corpora": members})


def _member(folder, prefix, corpus, pairs):
    """Write two files of lines. Gives the member of a mixture that trains on them alone."""
    for key, lines in zip(LANGUAGES, zip(*pairs, strict=True), strict=True):
        text = "".join(f"{line}\n" for line in lines).encode()
        path = folder / f"{prefix}.{corpus[key]}"
        write_whole(path, lambda temporary, text=text: temporary.write_bytes(text))
    languages = {key: corpus[key] for key in LANGUAGES}
    return {"corpus": "text_files", **languages, "data_dir": ".", "prefixes": [prefix, None, None]}
