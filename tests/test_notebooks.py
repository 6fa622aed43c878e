"""The notebooks: each runs to its end at toy size and shows its pictures."""

import ast
import base64
import re
import shutil
import subprocess
import time

import pytest
from documentation.pages import ROOT

SOURCES = sorted((ROOT / "notebooks").glob("*.py"))
# A limit for all cells together.
SECONDS = 300
# How many pictures each shows at least.
PICTURES = {"family": 2, "paper": 8, "reproduce": 2, "translate": 3}
NEEDED = ("fastapi", "ipykernel", "jupytext", "matplotlib", "nbclient", "safetensors", "uvicorn")


def executed(text, folder, seconds=SECONDS):
    """A notebook in the percent format, executed in a process of its own.

    Raises:
        TimeoutError: if it takes longer than so many seconds.
    """
    jupytext = pytest.importorskip("jupytext")
    nbclient = pytest.importorskip("nbclient")
    notebook = jupytext.reads(text, fmt="py:percent")
    end = time.monotonic() + seconds

    def seconds_left(cell):
        # 0 would be no limit.
        return max(1, int(end - time.monotonic()))

    resources = {"metadata": {"path": str(folder)}}
    client = nbclient.NotebookClient(notebook, timeout_func=seconds_left, resources=resources)
    return client.execute()


def pictures(notebook):
    """The PNG files that a notebook shows."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    encoded = [output.get("data", {}).get("image/png") for output in outputs]
    return [base64.b64decode(picture) for picture in encoded if picture]


@pytest.mark.slow
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_runs_to_its_end_and_shows_its_pictures(path, tmp_path, monkeypatch):
    for package in NEEDED:
        pytest.importorskip(package)
    # The kernel imports this checkout.
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    images = pictures(executed(path.read_text(encoding="utf-8"), tmp_path))
    assert len(images) >= PICTURES[path.stem]
    assert all(image.startswith(b"\x89PNG") for image in images)


@pytest.mark.slow
def test_control_a_notebook_that_takes_too_long_is_stopped(tmp_path):
    pytest.importorskip("ipykernel")
    naps = "# %%\nimport time\n" + "\n# %%\ntime.sleep(2)\n" * 30
    with pytest.raises(TimeoutError):
        executed(naps, tmp_path, seconds=8)


@pytest.mark.skipif(not shutil.which("make"), reason="there is no make")
def test_make_does_not_take_a_notebook_that_failed_for_done(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    programs = {"jupytext": "touch notebooks/a.ipynb", "jupyter-execute": "exit 1", "pip": "true"}
    for folder in ("bin", "notebooks", ".venv"):
        (tmp_path / folder).mkdir()
    for name, does in programs.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    for name in ("setup.cfg", "notebooks/a.py", ".venv/installed", ".venv/notebooks"):
        (tmp_path / name).touch()
    process = subprocess.run(["make", "notebooks", "BIN=bin"], cwd=tmp_path, capture_output=True)
    assert process.returncode != 0
    assert not (tmp_path / "notebooks" / "a.ipynb").exists()
    # A control: one that does not fail stays.
    (tmp_path / "bin" / "jupyter-execute").write_text("#!/bin/sh\ntrue\n")
    subprocess.run(["make", "notebooks", "BIN=bin"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "notebooks" / "a.ipynb").exists()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_has_a_title_pictures_and_assertions(path):
    text = path.read_text(encoding="utf-8")
    assert path.stem in PICTURES
    # jupytext takes the rest of a marker's line for the cell's metadata.
    markers = re.findall(r"^# %% \[markdown\].*", text, re.MULTILINE)
    assert set(markers) == {"# %% [markdown]"}
    cells = re.split(r"^# %%", text, flags=re.MULTILINE)
    assert cells[1].startswith(" [markdown]\n# # ")
    assert text.count("\nassert ") + text.count("    assert ") >= 3
    names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    assert "Drawing" in names
