# SPDX-License-Identifier: Apache-2.0
"""A Chromium without a screen, asked over a pipe by its DevTools protocol.

A page can so be pressed, scrolled and measured, and not only printed.
"""

import base64
import itertools
import json
import os
import select
import shutil
import struct
import subprocess
import sys
import time

from tests.directory import DirectoryCase
from tests.measure import contrast

OPEN = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
# Wide and narrow.
SIZES = ((1300, 4000), (400, 9000))
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_MOST_SECONDS = 240
_KEYS = {
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "Tab": (9, ""),
    "End": (35, ""),
    "Home": (36, ""),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
}


class PageError(Exception):
    """What the browser, or a script in it, refused."""


class Browser:
    """One page.

    :ivar complaints: what it has written to the console, and errors of scripts
    """

    def __init__(self, program, profile, width=1300, height=900):
        """Start it; end it with :meth:`close`."""
        self.complaints = []
        self._numbers = itertools.count(1)
        self._answers, self._buffer = {}, b""
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # The protocol is on descriptors 3 and 4.
        script = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            [
                *("bash", "-c", script, "browser", program, "--headless"),
                *("--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"),
                *(f"--user-data-dir={profile}", "--hide-scrollbars", "about:blank"),
            ],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._session = None
        page = next(
            found["targetId"]
            for found in self.ask("Target.getTargets")["targetInfos"]
            if found["type"] == "page"
        )
        found = self.ask("Target.attachToTarget", targetId=page, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")
        self.resize(width, height)

    def close(self):
        """End it."""
        os.close(self._out)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)

    def ask(self, method, **parameters):
        """Call a method of the protocol; return its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + _MOST_SECONDS
        while number not in self._answers:
            self._read(end)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise PageError(f"{method}: {answer['error']}")
        return answer["result"]

    def _read(self, end):
        left = end - time.monotonic()
        if left <= 0 or not select.select([self._in], [], [], left)[0]:
            raise PageError(f"no answer within {_MOST_SECONDS} s")
        data = os.read(self._in, 1 << 20)
        if not data:
            raise PageError("the browser has ended")
        *messages, self._buffer = (self._buffer + data).split(b"\0")
        for text in messages:
            message = json.loads(text)
            if "id" in message:
                self._answers[message["id"]] = message
            elif message["method"] in {
                "Runtime.consoleAPICalled",
                "Runtime.exceptionThrown",
                "Log.entryAdded",
            }:
                self.complaints.append(message["params"])

    def resize(self, width, height):
        """Give the screen a size in CSS pixels."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme):
        """Prefer ``light`` or ``dark``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", features=features)

    def open(self, path):
        """Show a page, and wait until it is loaded and drawn."""
        self.ask("Page.navigate", url=path.as_uri())
        self.run(
            "new Promise(r => document.readyState === 'complete' ? r() "
            ": addEventListener('load', r))"
        )
        self.settle()

    def settle(self):
        """Wait for two frames."""
        self.run(
            "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"
            ".then(() => null)"
        )

    def run(self, expression):
        """Return the value of an expression of JavaScript, or what it promises."""
        found = self.ask(
            "Runtime.evaluate",
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in found:
            raise PageError(found["exceptionDetails"])
        return found["result"].get("value")

    def press(self, *keys):
        """Press keys, or type text that is none of them."""
        for key in keys:
            if key not in _KEYS:
                self.ask("Input.insertText", text=key)
                continue
            code, text = _KEYS[key]
            event = {"key": key, "code": key, "windowsVirtualKeyCode": code}
            down = {"text": text} if text else {}
            kind = "keyDown" if text else "rawKeyDown"
            self.ask("Input.dispatchKeyEvent", type=kind, **event, **down)
            self.ask("Input.dispatchKeyEvent", type="keyUp", **event)
        self.settle()

    def screenshot(self, path):
        """Write a picture of the screen."""
        found = self.ask("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))


class PageCase(DirectoryCase):
    """A test of a page; without a browser it is skipped, and says so."""

    def setUp(self):
        super().setUp()
        program = next(filter(None, map(shutil.which, BROWSERS)), None)
        if program is None:
            why = f"no browser: none of {', '.join(BROWSERS)} is installed"
            print(f"SKIPPED {self.id()}: {why}", file=sys.stderr)  # noqa: T201
            self.skipTest(why)
        self.browser = Browser(program, self.directory / "profile")
        self.addCleanup(self.browser.close)

    def show_text(self, text):
        """Show a page of this text."""
        path = self.directory / "page.html"
        path.write_text(text, encoding="utf-8")
        self.browser.open(path)

    def texts(self, selector):
        """Return the text of each element that a selector finds, as it is shown."""
        return self.browser.run(
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            ".map((one) => one.innerText)"
        )

    def assert_no_complaint(self):
        self.assertEqual([], self.browser.complaints)


class LookTests:
    """How pages look, light and dark, wide and narrow; a mixin for a PageCase.

    Its method ``pages`` shows one page after the other, and yields their names.
    """

    def test_light_dark_wide_and_narrow(self):
        for _name in self.pages():
            self.browser.run(f"{OPEN}; null")
            for scheme in ("light", "dark"):
                self.browser.prefer(scheme)
                query = f"matchMedia('(prefers-color-scheme: {scheme})').matches"
                self.assertTrue(self.browser.run(query))
                for size in SIZES:
                    self.browser.resize(*size)
                    self.browser.settle()
                    self.assertEqual(size, self.pictured())
                    wide = "document.documentElement.scrollWidth"
                    self.assertEqual(size[0], self.browser.run(wide))
                    self.assertGreater(len(contrast.looked_at(self.browser)), 20)
                    self.assertEqual([], contrast.faults(self.browser))
        self.assert_no_complaint()

    def pictured(self):
        """Return the size of a picture of the page."""
        image = self.directory / "page.png"
        self.browser.screenshot(image)
        return struct.unpack(">II", image.read_bytes()[16:24])
