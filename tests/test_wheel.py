"""What is installed: a wheel holds each file of the packages, flag files and the page too."""

import pathlib
import shutil
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("keras_transformer", "pipelines")
# Beside those of the packages.
NEW = ("keras_transformer/flagfiles/table9/deeper/new.flags", "keras_transformer/server/page/a.svg")
UNNAMED = "keras_transformer/server/notes.txt"


def test_a_wheel_holds_all_files_of_the_packages(tmp_path):
    # In the folder of the source, a build would leave files.
    source = tmp_path / "source"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, source / package, ignore=lambda *_: ["__pycache__"])
    for name in ("setup.cfg", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    for name in (*NEW, UNNAMED):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("")
    expected = {
        path.relative_to(source).as_posix()
        for package in PACKAGES
        for path in (source / package).rglob("*")
        if path.is_file()
    }
    options = ("--quiet", "--no-deps", "--no-build-isolation", f"--wheel-dir={tmp_path}")
    command = [sys.executable, "-m", "pip", "wheel", *options, str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    # The file that no pattern names is a control.
    assert expected - held == {UNNAMED}
    assert held >= set(NEW)
