#!/usr/bin/env python3
"""Opens a page of `txl bench --html` in Chromium and uses it as a reader would.

Checks that nothing is reported on the console or loaded from elsewhere, that
the pictures are drawn, that the pointer shows values, a drag zooms, and a
double click zooms out again. Not part of ctest: it needs chromedriver (Debian:
chromium-driver).

Usage: page_in_browser.py PAGE.html [SCREENSHOT.png]
"""

import base64
import json
import pathlib
import subprocess
import sys
import time
import urllib.request


class Browser:
    """A headless Chromium behind chromedriver's W3C protocol."""

    def __init__(self, page):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"],
                                       stdout=subprocess.PIPE, text=True)
        line = ""
        while "successfully on port" not in line:
            line = self.driver.stdout.readline()
        self.base = "http://127.0.0.1:" + line.rsplit(" ", 1)[1].strip(".\n")
        options = {"args": ["--headless=new", "--no-sandbox",
                            "--window-size=900,1400"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options,
                  "goog:loggingPrefs": {"browser": "ALL"}}
        session = self.call("POST", "/session",
                            {"capabilities": {"alwaysMatch": wanted}})
        self.base += "/session/" + session["sessionId"]
        self.call("POST", "/url", {"url": pathlib.Path(page).resolve().as_uri()})

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.base + path, data, {"Content-Type": "application/json"},
            method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def run(self, code):
        return self.call("POST", "/execute/sync", {"script": code, "args": []})

    def pointer(self, *actions):
        self.call("POST", "/actions", {"actions": [
            {"type": "pointer", "id": "mouse", "actions": list(actions)}]})
        time.sleep(0.3)

    def close(self):
        self.call("DELETE", "")
        self.driver.terminate()


def move(x, y):
    return {"type": "pointerMove", "duration": 50, "x": round(x), "y": round(y)}


DOWN = {"type": "pointerDown", "button": 0}
UP = {"type": "pointerUp", "button": 0}
LAST = "const chart = charts[charts.length - 1]; "
SPAN = LAST + "return chart.scales.x.max - chart.scales.x.min"


def check(browser):
    log = browser.call("POST", "/se/log", {"type": "browser"})
    assert not log, log
    assert browser.run(
        "return performance.getEntriesByType('resource').length") == 0
    assert browser.run("return charts.length") >= 3
    assert "time to first token" in browser.run("return document.body.innerText")
    browser.run(LAST + "chart.over.scrollIntoView({block: 'center'})")
    left, top, width, height = browser.run(
        LAST + "const box = chart.over.getBoundingClientRect(); "
        "return [box.left, box.top, box.width, box.height]")
    whole = browser.run(SPAN)
    middle = top + height / 2
    browser.pointer(move(left + width / 2, middle))
    values = browser.run(LAST + "return [...chart.root.querySelectorAll("
                         "'.u-value')].map(value => value.textContent)")
    assert values and all(values), values
    browser.pointer(move(left + 0.3 * width, middle), DOWN,
                    move(left + 0.6 * width, middle), UP)
    assert 0.2 * whole < browser.run(SPAN) < 0.4 * whole
    browser.pointer(DOWN, UP, DOWN, UP)
    assert browser.run(SPAN) == whole
    print(f"{browser.run('return document.title')}: "
          f"{browser.run('return charts.length')} pictures, values at the "
          f"pointer {values}, zoom in and out")


def main():
    browser = Browser(sys.argv[1])
    try:
        check(browser)
        browser.run("scrollTo(0, 0)")
        if len(sys.argv) > 2:
            pathlib.Path(sys.argv[2]).write_bytes(
                base64.b64decode(browser.call("GET", "/screenshot")))
    finally:
        browser.close()


if __name__ == "__main__":
    main()
