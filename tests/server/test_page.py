"""The page in a browser without a window: what a user types is translated, and errors are shown."""

import base64
import contextlib
import json
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from headless_browser import chromium, wait_for
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from shell import printed
from string_model import StringParser, StringReader

from pipelines.batches import picture_files


@pytest.fixture(scope="module")
def browser():
    with chromium() as driver:
        yield driver


@pytest.fixture
def shown(browser, request):
    """A function that tells the text of an element."""
    yield lambda name: browser.find_element(By.ID, name).text
    if folder := os.environ.get("SCREENSHOTS"):
        browser.save_screenshot(f"{folder}/{request.node.name}.png")


@pytest.fixture
def page(browser, client, shown):
    browser.get(str(client.base_url))
    return shown


@pytest.fixture
def page_of(browser, start, tmp_path, shown):
    """A function that opens the page of another model."""
    with contextlib.ExitStack() as servers:

        def opened(model):
            model.write(tmp_path / "m" / "1")
            browser.get(str(servers.enter_context(start(tmp_path / "m")).base_url))
            return shown

        yield opened


def type_and_wait(browser, text, element, *keys):
    browser.find_element(By.ID, "text").send_keys(text, *keys)
    if not keys:
        browser.find_element(By.ID, "go").click()
    wait_for(browser, lambda: browser.find_element(By.ID, element).text)


def test_a_text_is_translated(browser, page):
    type_and_wait(browser, "two dogs <b>run</b>", "best")
    assert page("best") == "TWO DOGS <B>RUN</B>"
    # The second hypothesis has no finite score, and is left out.
    assert page("hypotheses") == "TWO DOGS <B>RUN</B> -0.200"
    assert page("version") == "version 1"
    assert page("error") == page("lacking") == ""


def test_ctrl_enter_translates_unless_an_answer_is_waited_for(browser, page):
    browser.execute_script("get('go').disabled = true; get('text').value = 'another'")
    browser.find_element(By.ID, "text").send_keys(Keys.CONTROL, Keys.ENTER)
    browser.execute_script("get('go').disabled = false; get('text').value = ''")
    type_and_wait(browser, "it's", "best", Keys.CONTROL, Keys.ENTER)
    assert page("best") == "IT'S"
    count = "return performance.getEntries().filter(({ name }) => name.endsWith(':predict')).length"
    wait_for(browser, lambda: browser.execute_script(count) >= 3)
    assert browser.execute_script(count) == 3


def test_the_curl_line_does_the_same_in_a_shell(browser, start, exported, shown):
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    with start(exported / "m", name="it's m (1)") as server:
        browser.get(str(server.base_url))
        type_and_wait(browser, 'it\'s "one"', "best")
        answer = json.loads(printed("sh", "-c", f"{shown('curl')} --silent"))
    assert answer["predictions"][0]["translations"][0] == 'IT\'S "ONE"'


def test_every_head_is_drawn_and_can_be_chosen(browser, page):
    type_and_wait(browser, "two dogs", "best")
    heads = browser.find_elements(By.CSS_SELECTOR, "#heads button")
    assert len(heads) == 3 * 2
    heads[1].click()
    for name, value in (("layer", "0"), ("head", "1")):
        assert browser.find_element(By.ID, name).get_attribute("value") == value
    squares = browser.find_elements(By.CSS_SELECTOR, "#picture rect:not(.frame)")
    # The model attends along the diagonal.
    expected = [1, 0, 0, 0, 1, 0, 0, 0, 1]
    assert [float(square.get_attribute("fill-opacity")) for square in squares] == expected
    assert page("picture").split() == ["two", "dogs", "</s>", "TWO", "DOGS", "</s>"]


def test_a_click_on_a_bar_takes_its_piece(browser, page):
    type_and_wait(browser, "two dogs", "bars")
    assert page("bars").split() == ["\u24230", "75.0", "%", "</s>", "25.0", "%"]
    bars = browser.find_elements(By.CSS_SELECTOR, "#bars .filling")
    assert [bar.get_attribute("style") for bar in bars] == ["width: 75%;", "width: 25%;"]
    browser.find_element(By.CSS_SELECTOR, "#bars button").click()
    wait_for(browser, lambda: page("bars").startswith("\u24231"))
    assert page("came") == "\u24230"
    # Nothing follows the end. A click on a piece that was chosen goes back.
    browser.find_elements(By.CSS_SELECTOR, "#bars button")[1].click()
    wait_for(browser, lambda: browser.find_element(By.ID, "ended").is_displayed())
    assert page("bars") == ""
    browser.find_element(By.CSS_SELECTOR, "#came button").click()
    wait_for(browser, lambda: page("bars").startswith("\u24230"))
    assert page("came") == ""


def test_options_change_the_bars(browser, page):
    type_and_wait(browser, "two dogs", "bars")
    browser.execute_script(
        "get('temperature').value = 2; get('top_k').value = 0;"
        "get('temperature').dispatchEvent(new Event('input'));"
    )
    wait_for(browser, lambda: page("bars").split()[1] == "37.5")
    assert page("temperature_value") == "2"


def test_a_parser_s_tree_is_drawn(browser, page_of):
    shown = page_of(StringParser())
    wait_for(browser, lambda: shown("go") == "Parse")
    type_and_wait(browser, "two dogs", "tree")
    assert shown("what") == "Tree"
    texts = browser.find_elements(By.CSS_SELECTOR, "#tree svg text")
    assert [text.text for text in texts] == ["S", "NP", "two", "dogs"]
    assert [text.get_attribute("class") for text in texts] == ["label", "label", "word", "word"]
    assert len(browser.find_elements(By.CSS_SELECTOR, "#tree svg path")) == 3
    assert not browser.find_element(By.ID, "best").is_displayed()
    assert "next pieces" in shown("lacking")


def test_an_error_is_shown_in_words(browser, page):
    type_and_wait(browser, "fail", "error")
    assert "this text fails" in page("error")
    assert not browser.find_element(By.ID, "answer").is_displayed()


def test_the_end_of_a_hebrew_sentence_is_on_its_left(browser, page):
    type_and_wait(browser, "\u05e9\u05dc\u05d5\u05dd!", "best")
    place = """
        const range = document.createRange();
        range.setStart(get("best").firstChild, arguments[0]);
        range.setEnd(get("best").firstChild, arguments[0] + 1);
        return range.getBoundingClientRect().left;
    """
    assert browser.execute_script(place, 4) < browser.execute_script(place, 0)


def test_a_translation_is_shown_though_its_attention_is_refused(browser, start, exported, shown):
    with start(exported / "m", max_response_bytes=10_000) as small:
        browser.get(str(small.base_url))
        type_and_wait(browser, "w " * 20, "error")
        assert "The answer of `align`" in shown("error")
        assert shown("best") == " ".join("W" * 20)
        assert not browser.find_element(By.ID, "attention").is_displayed()


def test_the_browser_logs_no_error_and_asks_no_other_host(browser, page):
    type_and_wait(browser, "a", "best")
    severe = [line for line in browser.get_log("browser") if "400" not in line["message"]]
    assert severe == []
    urls = browser.execute_script(
        "return performance.getEntriesByType('resource').map(({ name }) => new URL(name).host)"
    )
    assert set(urls) == {browser.execute_script("return location.host")}


def test_a_hidden_word_is_guessed_and_sentences_are_searched(browser, page_of):
    page = page_of(StringReader())
    type_and_wait(browser, "no mask", "error")
    assert page("error") == "Write <mask> or [MASK] in place of a word to guess."
    browser.find_element(By.ID, "text").clear()
    type_and_wait(browser, "the <mask> barks", "best")
    assert page("best") == "the dog barks"
    assert page("readings").split() == ["dog", "75.0", "%", "cat", "25.0", "%"]
    browser.find_element(By.ID, "sentences").send_keys("abcd\n\nthe <mask> barked\nthe")
    browser.find_element(By.ID, "look").click()
    wait_for(browser, lambda: page("found"))
    lines = page("found").split("\n")
    assert [line.rsplit(" ", 1)[0] for line in lines] == ["the <mask> barked", "abcd", "the"]
    assert page("error") == ""


def test_a_transparent_picture_is_laid_over_white_as_in_training(browser, page):
    drawing = np.zeros((4, 6, 4), np.uint8)
    drawing[1:3, 2:5, 3] = 255
    drawing[0, 0, 3] = 128
    png = tf.io.encode_png(drawing)
    size = "pictureSize = { height: 8, width: 6 }; const [bytes, done] = arguments;"
    file = "new File([new Uint8Array(bytes)], 'a.png', { type: 'image/png' })"
    sent = browser.execute_async_script(f"{size} pngOf({file}).then(done)", [*png.numpy()])
    pixels = picture_files.decoded(tf.constant(base64.b64decode(sent)), 1)
    np.testing.assert_array_equal(pixels[2:6], picture_files.decoded(png, 1))
    assert pixels[:2].numpy().max() == pixels[6:].numpy().max() == 0
