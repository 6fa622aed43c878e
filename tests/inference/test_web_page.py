"""An exported page in a browser translates as Python does with the same folder."""

import functools
import http.server
import random
import threading

import numpy as np
import pytest

pytest.importorskip("tf2onnx")

from drawn_models import drawn
from headless_browser import chromium, wait_for
from selenium.webdriver.common.by import By

from keras_transformer.decoding import DecodingOptions
from keras_transformer.inference import portable_export
from keras_transformer.inference.translator import Translator
from keras_transformer.tasks.translation.module import TranslationModule
from pipelines import corpora, vocabularies
from pipelines.special_ids import EOS
from pipelines.vocabularies.protected_spans import KINDS, ProtectedSpans

pytestmark = pytest.mark.slow
LINES = [
    *("a {x} b <b>c {y}</b> d", "see https://a.b/c or me@a.org", "", "no span", " {x} "),
    *("<p>a <b>b</b> <i>c</i></p>", "⟦keep me⟧ b", "e {a} {a}", "\U0001f600 ä", "%s d 12345"),
]
LINES += [
    " ".join(random.Random(number).choices("abcdefgh", k=1 + number % 12)) for number in range(40)
]

SEARCHES = [
    *((4, 0.6, "leaving"), (1, 0.6, "leaving"), (4, 3.0, "leaving")),
    *((4, 0.0, "until_full"), (3, 2.0, "until_worse"), (4, 1.0, "staying")),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """What `python -m http.server` answers with, without its lines."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    text = corpora.load("reverse", source_language="a", target_language="b").train
    spans = ProtectedSpans(tuple(KINDS))
    pieces = vocabularies.learn(text.sources, text.targets, "joint", 340, protected=spans)
    options = DecodingOptions(beam_size=4, max_length="+6")
    model = drawn(vocabulary_size=pieces.size, output_bias=True)
    # Translations end before their limit, so that the penalty matters.
    [bias] = [one for one in model.weights if one.shape == (pieces.size,)]
    bias.assign(np.where(np.arange(pieces.size) == EOS, 3, bias))
    module = TranslationModule(model, pieces, options)
    path = tmp_path_factory.mktemp("web") / "model"
    try:
        return portable_export.export(module, path, {}, LINES[:2], form="web")
    except OSError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def browser():
    with chromium() as one:
        yield one


@pytest.fixture(scope="module")
def address(folder):
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def shown(browser, name):
    return browser.find_element(By.ID, name).get_property("textContent")


def enter(browser, name, value):
    element = browser.find_element(By.ID, name)
    element.clear()
    element.send_keys(value)


def test_translations_are_those_of_python(browser, folder, address):
    browser.get(address)
    button = browser.find_element(By.ID, "go")
    wait_for(browser, button.is_enabled)
    browser.execute_script("get('text').value = arguments[0]", "\n".join(LINES))
    found = {}
    for beam, penalty, form in SEARCHES:
        browser.execute_script("translator.settings.beam_form = arguments[0]", form)
        enter(browser, "beam_size", str(beam))
        enter(browser, "length_penalty", str(penalty))
        button.click()
        wait_for(browser, button.is_enabled)
        assert shown(browser, "error") == ""
        found[beam, penalty, form] = shown(browser, "best").split("\n")
        translator = Translator.load(folder, beam_size=beam, length_penalty=penalty, beam_form=form)
        assert found[beam, penalty, form] == [translator.translate([line])[0] for line in LINES]
    assert len({*map(tuple, found.values())}) > 4
    entries = browser.execute_script("return performance.getEntries().map((one) => one.name)")
    loaded = [one for one in entries if "://" in one]
    assert len(loaded) > 8
    assert all(one.startswith(address) for one in loaded)
    assert browser.get_log("browser") == []


def test_a_page_that_is_opened_as_a_file_says_what_to_do(browser, folder):
    browser.get(f"{folder.as_uri()}/index.html")
    assert "python -m http.server 8000 --directory=FOLDER" in shown(browser, "error")
    assert not browser.find_element(By.ID, "go").is_enabled()
