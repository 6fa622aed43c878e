"""The arithmetic of the page's panel for pictures, run by node, against NumPy."""

import json
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

pytest.importorskip("fastapi")
if not shutil.which("node"):
    pytest.skip("node is not installed", allow_module_level=True)

from keras_transformer.server import app

PROGRAM = """
const given = JSON.parse(require("fs").readFileSync(0, "utf-8"));
console.log(JSON.stringify([
  opacities(given.heads, 4, 6),
  ranked(given.found, 2),
  fitted(40, 20, { width: 8, height: 8 }),
  fitted(3, 6, { width: 8, height: 8 })]));
"""


def test_opacities_ranks_and_places():
    heads = np.random.default_rng(7).uniform(size=(3, 2, 3))
    found = {"classes": ["a", "b", "c"], "probabilities": [0.2, 0.1, 0.7]}
    script = (pathlib.Path(app.PAGE) / "pictures.js").read_text(encoding="utf-8")
    page = "const get = () => ({ addEventListener() {} });\n"
    done = subprocess.run(
        [shutil.which("node"), "-e", page + script + PROGRAM],
        input=json.dumps({"heads": heads.tolist(), "found": found}).encode(),
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    opacities, ranked, wide, high = json.loads(done.stdout)
    mean = heads.mean(axis=0)
    np.testing.assert_allclose(opacities, np.kron(mean / mean.max(), np.ones((2, 2))), rtol=1e-12)
    assert ranked == [["c", 0.7], ["a", 0.2]]
    assert wide == [0, 2, 8, 4]
    assert high == [2, 0, 4, 8]
