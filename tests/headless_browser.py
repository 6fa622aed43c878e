"""Chromium without a window, for tests of pages."""

import contextlib
import os
import shutil
import tempfile

import pytest

pytest.importorskip("selenium")
if not (shutil.which("chromedriver") and shutil.which("chromium")):
    pytest.skip("chromium and chromedriver are not installed", allow_module_level=True)

from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait


@contextlib.contextmanager
def chromium():
    options = webdriver.ChromeOptions()
    quiet = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
    for argument in (*quiet, "--window-size=1000,1400"):
        options.add_argument(argument)
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # Chromium leaves files in its temporary folder.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        env = {**os.environ, "TMPDIR": folder}
        service = webdriver.ChromeService(shutil.which("chromedriver"), env=env)
        with webdriver.Chrome(options, service) as browser:
            yield browser


def wait_for(browser, condition):
    WebDriverWait(browser, 60, poll_frequency=0.05).until(lambda _: condition())
