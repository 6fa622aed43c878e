"""Memory of the input, as `benchmarks.limits.input_memory` measures it, in a process of its own."""

import re
import subprocess
import sys

import pytest

from benchmarks.peers.turns import ROOT


@pytest.mark.slow
def test_memory_does_not_grow_with_pairs_that_are_mapped(tmp_path):
    """The control: of pairs that are held it does, by 110 bytes each."""
    command = [sys.executable, "-m", "benchmarks.limits.input_memory", f"--folder={tmp_path}"]
    command += ["--pairs=200000,2000000", "--ids=mapped,held"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    rows = re.findall(r"^\| [\d,]+ \| (\w+) .* ([\d.]+) \|$", done.stdout, re.MULTILINE)
    assert [how for how, _ in rows] == ["mapped", "held"] * 2
    mapped, held, mapped_of_more, held_of_more = (float(own) for _, own in rows)
    assert mapped_of_more - mapped < 0.05
    assert held_of_more - held > 0.15
