"""Translations of two made-up systems, and sacrebleu's command line, which scores them."""

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


def damaged(seed, share):
    """The references with this share of their words, a tenth of them with a capital."""
    draw = random.Random(seed)
    return [
        " ".join(
            word.title() if draw.random() < 0.1 else word
            for word in line.split()
            if draw.random() < share
        )
        for line in REFERENCES
    ]


GOOD = damaged(seed=1, share=0.9)
BAD = damaged(seed=2, share=0.7)


def sacrebleu(folder, systems, *arguments):
    """What sacrebleu's command line prints for translations, parsed from JSON.

    Args:
        folder: for files.
        systems: lists of translations; of several, the first is the baseline.
        arguments: of the command line.
    """
    texts = {f"s{number}": lines for number, lines in enumerate(systems)}
    for name, lines in {"references": REFERENCES, **texts}.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "references", "-i", *texts, *arguments]
    process = subprocess.run(
        [*command, "--quiet", "--format", "json", "-w", "6"], cwd=folder, capture_output=True
    )
    assert process.returncode == 0, process.stderr.decode()
    return json.loads(process.stdout)
