"""Translations of two made-up systems, and sacrebleu's command line, which tells their scores."""

import json
import random
import subprocess
import sys

REFERENCES = [
    "Der Hund läuft schnell über die Straße.",
    "Schalte das Licht in der Küche aus!",
    "Zwei Männer stehen vor einem Haus.",
    "Das ist, wie man sagt, ein guter Tag-Nacht-Rhythmus.",
    "In den Jahren 1998-2004 kostete es 3.50 Euro „pro Stück“.",
    "Ist O'Brien's Hund der Sieger?",
] * 4


def damaged(seed, kept):
    """The references without some of their words, and some words with a capital."""
    draw = random.Random(seed)
    return [
        " ".join(
            word.title() if draw.random() < 0.1 else word
            for word in line.split()
            if draw.random() < kept
        )
        for line in REFERENCES
    ]


GOOD = damaged(seed=1, kept=0.9)
BAD = damaged(seed=2, kept=0.7)


def sacrebleu(folder, systems, *arguments):
    """What sacrebleu's command line tells of translations, from JSON.

    Args:
        folder: for files.
        systems: lists of translations; of several, the first is the baseline.
        arguments: of the command line.
    """
    texts = {f"s{number}": lines for number, lines in enumerate(systems)}
    for name, lines in {"references": REFERENCES, **texts}.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "references", "-i", *texts, *arguments]
    done = subprocess.run(
        [*command, "--quiet", "--format", "json", "-w", "6"], cwd=folder, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)
