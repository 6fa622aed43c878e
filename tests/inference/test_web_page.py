"""An exported page in a browser translates as Python does with the same folder."""

import contextlib
import functools
import http.server
import random
import threading

import numpy as np
import pytest

pytest.importorskip("tf2onnx")

from drawn_models import learned, random_model
from headless_browser import chromium, wait_for
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from keras_transformer.decoding import DecodingOptions
from keras_transformer.decoding.remembered_options import LANGUAGES
from keras_transformer.inference import portable_export, web_folder
from keras_transformer.inference.translator import Translator
from keras_transformer.tasks.translation.module import TranslationModule
from pipelines.special_ids import EOS
from pipelines.vocabularies.other_order import in_order
from pipelines.vocabularies.protected_spans import KINDS, ProtectedSpans
from pipelines.vocabularies.vocabulary import Vocabulary

pytestmark = pytest.mark.slow
LINES = [
    *("a {x} b <b>c {y}</b> d", "see https://a.b/c or me@a.org", "", "no span", " {x} "),
    "\u3000\u200b",
    *("<p>a <b>b</b> <i>c</i></p>", "⟦keep me⟧ b", "e {a} {a}", "\U0001f600 ä", "%s d 12345"),
]
LINES += [
    " ".join(random.Random(number).choices("abcdefgh", k=1 + number % 12)) for number in range(40)
]

# With a term's translation, which in one line the likeliest hypothesis lacks.
LINES += [f"h {word} ⟪g ⟹ <⟫ f" for word in "abcdefgh"]
SEARCHES = [
    *((4, 0.0, "until_full"), (3, 2.0, "until_worse"), (4, 1.0, "staying")),
    *((1, 0.6, "leaving"), (4, 3.0, "leaving"), (4, 0.6, "leaving")),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """The handler of `python -m http.server`, without its log lines."""

    def log_message(self, *_):
        pass


def exported(pieces, path, options, end=3):
    model = random_model(vocabulary_size=pieces.size, output_bias=True)
    # Translations end before their limit, so that the penalty matters.
    [bias] = [weight for weight in model.weights if weight.shape == (pieces.size,)]
    bias.assign(np.where(np.arange(pieces.size) == EOS, end, bias))
    module = TranslationModule(model, pieces, options)
    try:
        web_folder.prepare(module)
    except OSError as error:
        pytest.skip(str(error))
    return portable_export.export(module, path, {}, LINES[:2], form="web")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pieces = learned(340, protected=ProtectedSpans(tuple(KINDS), glossary_rate=0.1))
    options = DecodingOptions(beam_size=4, max_length="+6")
    return exported(pieces, tmp_path_factory.mktemp("web") / "model", options)


@pytest.fixture(scope="module")
def many_languages(tmp_path_factory):
    own = learned(340)
    labels = ["__de__", "__en__", "__fr__"]
    pieces = Vocabulary(in_order(own.model, [*own.pieces[EOS + 1 :], *labels], labels=labels)[0])
    pair = {"source_language": "en", "target_language": "de"}
    options = DecodingOptions(
        beam_size=3,
        max_length="+6",
        beam_form="until_worse",
        barred=tuple(map(pieces.pieces.index, labels)),
        forbidden_words=("d d",),
        **pair,
    )
    return exported(pieces, tmp_path_factory.mktemp("many") / "model", options, end=2)


@pytest.fixture(scope="module")
def browser():
    with chromium() as driver:
        yield driver


@contextlib.contextmanager
def served(folder, kind=Quiet, port=0):
    handler = functools.partial(kind, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@contextlib.contextmanager
def opened(browser, folder):
    """Open a folder's page and enter the lines. Yields its address and its button."""
    with served(folder) as address:
        browser.get(address)
        button = browser.find_element(By.ID, "go")
        wait_for(browser, button.is_enabled)
        browser.execute_script("get('text').value = arguments[0]", "\n".join(LINES))
        yield address, button


def translated(browser, button):
    button.click()
    wait_for(browser, button.is_enabled)
    assert shown(browser, "error") == ""
    return shown(browser, "best").split("\n")


def shown(browser, name):
    return browser.find_element(By.ID, name).get_property("textContent")


def enter(browser, name, value):
    element = browser.find_element(By.ID, name)
    element.clear()
    element.send_keys(value)


def test_translations_are_those_of_python(browser, folder):
    translations = {}
    with opened(browser, folder) as (address, button):
        assert not browser.find_element(By.ID, "languages").is_displayed()
        for beam, penalty, form in SEARCHES:
            browser.execute_script("translator.settings.beam_form = arguments[0]", form)
            enter(browser, "beam_size", str(beam))
            enter(browser, "length_penalty", str(penalty))
            translations[beam, penalty, form] = translated(browser, button)
        # A control: the last search without the terms.
        browser.execute_script("translator.settings.learned_terms = false")
        assert translated(browser, button) != translations[SEARCHES[-1]]
    for (beam, penalty, form), texts in translations.items():
        search = {"beam_size": beam, "length_penalty": penalty, "beam_form": form}
        translator = Translator.load(folder, **search)
        assert texts == [translator.translate([line])[0] for line in LINES]
    assert len({*map(tuple, translations.values())}) > 4
    entries = browser.execute_script("return performance.getEntries().map((entry) => entry.name)")
    loaded = [url for url in entries if "://" in url]
    assert len(loaded) > 8
    assert all(url.startswith(address) for url in loaded)
    assert browser.get_log("browser") == []


def test_languages_are_chosen_in_two_lists_and_forbidden_words_never_come(browser, many_languages):
    translations = {}
    with opened(browser, many_languages) as (_, button):
        lists = {name: Select(browser.find_element(By.ID, name)) for name in LANGUAGES}
        for select, chosen in zip(lists.values(), ("en", "de"), strict=True):
            texts = [option.text for option in select.options]
            assert texts == ["English (en)", "French (fr)", "German (de)"]
            assert select.first_selected_option.get_attribute("value") == chosen
        for pair in (("en", "de"), ("fr", "de"), ("de", "fr")):
            for select, language in zip(lists.values(), pair, strict=True):
                select.select_by_value(language)
            translations[pair] = translated(browser, button)
        unknown = "translator.translate('a', {target_language: 'tlh'})"
        script = f"{unknown}.catch((error) => arguments[0](error.message))"
        message = browser.execute_async_script(script)
        assert message == "target_language=tlh: the model has de, en, fr. Name one of these."
        # While it translates, another text does not begin, whose translation would come first.
        for is_locked in (True, False):
            begun = "window.begun = false; attempt = () => { begun = true; }; get('go').disabled ="
            browser.execute_script(f"{begun} arguments[0]", is_locked)
            browser.find_element(By.ID, "text").send_keys(Keys.CONTROL, Keys.ENTER)
            assert browser.execute_script("return begun") != is_locked
    for pair, texts in translations.items():
        translator = Translator.load(many_languages, **dict(zip(LANGUAGES, pair, strict=True)))
        assert texts == [translator.translate([line])[0] for line in LINES]
        assert not any("d d" in text for text in texts)
    assert len({*map(tuple, translations.values())}) == 3
    free = Translator.load(many_languages, forbidden_words=())
    assert any("d d" in text for text in free.translate(LINES))


def test_an_export_s_own_wide_beam_and_high_penalty_are_accepted(browser, folder):
    with opened(browser, folder) as (_, button):
        browser.execute_script("get('text').value = 'a'")
        enter(browser, "beam_size", "40")
        enter(browser, "length_penalty", "12.5")
        search = {"beam_size": 40, "length_penalty": 12.5}
        expected = Translator.load(folder, **search).translate(["a"])
        assert translated(browser, button) == expected


def test_no_translation_of_an_earlier_text_stands_beside_an_error(browser, folder):
    with opened(browser, folder) as (_, button):
        browser.execute_script("get('text').value = 'a'")
        translated(browser, button)
        browser.execute_script("get('text').value = 'a b '.repeat(1000)")
        button.click()
        wait_for(browser, button.is_enabled)
        assert "more than the 1024 allowed" in shown(browser, "error")
        assert not browser.find_element(By.ID, "answer").is_displayed()


class Kept(Quiet):
    """As a server of files that have not changed for days: a browser need not ask again."""

    def end_headers(self):
        self.send_header("Cache-Control", "max-age=1000")
        super().end_headers()


def test_a_model_at_the_address_of_an_earlier_one_is_read_anew(browser, folder, many_languages):
    port = 0
    for model in (folder, many_languages):
        with served(model, Kept, port) as address:
            port = int(address.rsplit(":")[-1].strip("/"))
            browser.get(address)
            button = browser.find_element(By.ID, "go")
            wait_for(browser, button.is_enabled)
            browser.execute_script("get('text').value = arguments[0]", LINES[-1])
            expected = Translator.load(model).translate(LINES[-1:])
            assert translated(browser, button) == expected


def test_a_page_that_is_opened_as_a_file_says_what_to_do(browser, folder):
    browser.get(f"{folder.as_uri()}/index.html")
    assert "python -m http.server 8000 --directory=FOLDER" in shown(browser, "error")
    assert not browser.find_element(By.ID, "go").is_enabled()
