"""Benchmarks whose results are kept with the flags that they depend on; nothing is trained here."""

import json
import pathlib
import types

import pytest
from absl import flags


def test_layers_that_were_measured_at_other_sizes_are_refused(benchmark_of, tmp_path, monkeypatch):
    table1 = benchmark_of("paper.table1", "--layers=linear", f"--output_dir={tmp_path / 'table1'}")
    measured = {of: {"256": 1.0, "8192": 2.0} for of in ("seconds", "bytes", "layers", "depth")}

    def run(command, check):
        path = pathlib.Path(table1.FOLDER.value) / "linear.json"
        path.parent.mkdir()
        path.write_text(json.dumps(measured))

    monkeypatch.setattr(table1, "subprocess", types.SimpleNamespace(run=run))
    table1.main([])
    table1.main([])
    flags.FLAGS.width = 64
    with pytest.raises(SystemExit, match="was made with width=512, not 64"):
        table1.main([])
