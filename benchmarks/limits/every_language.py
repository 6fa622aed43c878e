"""All languages of the default corpus: what a vocabulary of at most 4,000 pieces holds of each, and
what a perfect translator would be scored.

    python -m benchmarks.limits.every_language [--steps=20] [--languages=ar,th]

With `--steps` a small model of each is trained by the command that users type, so that a language
that cannot be trained is seen. It ends with exit 1 if a language fails.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

SIZES = [
    *("--num_layers=1", "--d_model=32", "--d_ff=64", "--num_heads=2", "--batch_tokens=256"),
    *("--norelease", "--validation_sentences=0", "--embedding_initialization=drawn"),
]


def languages_of_corpus() -> dict[str, int]:
    """The codes of all languages but English, each with the number of its files."""
    from pipelines.corpora import home_assistant, load

    load("home_assistant", source_language="en", target_language="de")
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "keras_transformer"
    wheel = cache.expanduser() / home_assistant.WHEEL
    pattern = re.compile(home_assistant.TRANSLATION.format(language="([^/]+)"))
    with zipfile.ZipFile(wheel) as archive:
        codes = (pattern.fullmatch(name) for name in archive.namelist())
        counts = collections.Counter(found[1] for found in codes if found)
    return {code: count for code, count in sorted(counts.items()) if code != "en"}


def row(language: str, steps: int) -> tuple[str, bool]:
    """What is told of a language, and whether all went well."""
    from keras_transformer.evaluation import metrics
    from pipelines import vocabularies
    from pipelines.corpora import load

    try:
        corpus = load("home_assistant", source_language="en", target_language=language)
    except ValueError as error:
        # The corpus has some codes with a handful of texts.
        return f"| {language} | {error} |", "has too little" in str(error)
    learned = vocabularies.learn(corpus.train.sources, corpus.train.targets, "joint", 4000)
    # Not the test side alone: of the smallest it has no four words in a row, and no BLEU.
    texts = [text for side in (corpus.test, corpus.valid, corpus.train) for text in side.targets]
    chosen = metrics.choose(["bleu", "chrf"], None, language)
    scores = metrics.measure(chosen, texts[:2000], texts[:2000])
    told = [f"{len(corpus.train):,}", f"{learned.source.size:,}", metrics.tokenizer_of(language)]
    told += [f"{scores[name]['score']:.1f}" for name in chosen]
    well = all(scores[name]["score"] > 99.99 for name in chosen)
    if steps:
        failure = trained(language, steps)
        told.append(failure or "trained")
        well = well and not failure
    return f"| {language} | {' | '.join(told)} |", well


def trained(language: str, steps: int) -> str:
    """What went wrong in a training of some steps; nothing if all went well."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "keras_transformer.train", "--flagfile=tiny.flags"]
        command += [f"--target_language={language}", f"--model_dir={folder}/run", *SIZES]
        done = subprocess.run(
            [*command, f"--max_steps={steps}"], capture_output=True, text=True, check=False
        )
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--languages", help="Joined by commas. Default: all.")
    given = parser.parse_args()
    languages = given.languages.split(",") if given.languages else languages_of_corpus()
    print("| language | pairs to train | pieces | tokenizer | BLEU | chrF |", flush=True)
    all_well = True
    for language in languages:
        told, well = row(language, given.steps)
        print(told if well else f"{told} FAILED", flush=True)
        all_well = all_well and well
    sys.exit(0 if all_well else 1)


if __name__ == "__main__":
    main()
