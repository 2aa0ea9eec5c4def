"""A Firefox without a window, for tests, driven by Marionette: the protocol that is built into Firefox, so that no driver has to be
installed beside it. Where Firefox is missing, a test ends with SKIPPED and says so."""

import base64
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SKIPPED = 77  # what CMake knows as SKIP_RETURN_CODE
_START_SECONDS, _ANSWER_SECONDS = 120, 120


class FirefoxError(Exception):
    """What Firefox answered instead of a result."""


class Firefox:
    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_SECONDS)
        self._buffer, self._number = b"", 0
        self._read()  # it says first which protocol it speaks
        self._ask("WebDriver:NewSession", {})

    def _read(self):
        """A message is its length in bytes, a colon, and JSON."""
        while b":" not in self._buffer:
            self._receive()
        length, _, rest = self._buffer.partition(b":")
        while len(rest) < int(length):
            self._receive()
            rest = self._buffer.partition(b":")[2]
        self._buffer = rest[int(length):]
        return json.loads(rest[:int(length)])

    def _receive(self):
        part = self._socket.recv(1 << 16)
        if not part:
            raise FirefoxError("Firefox has closed the connection")
        self._buffer += part

    def _ask(self, command, parameters):
        self._number += 1
        message = json.dumps([0, self._number, command, parameters]).encode()
        self._socket.sendall(str(len(message)).encode() + b":" + message)
        _, _, error, result = self._read()
        if error:
            raise FirefoxError(f"{command}: {error['error']}: {error['message']}")
        return result

    def open(self, address):
        self._ask("WebDriver:Navigate", {"url": address})

    def script(self, text, *arguments):
        return self._ask("WebDriver:ExecuteScript", {"script": text, "args": list(arguments), "newSandbox": False})["value"]

    def press(self, *keys):
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._ask("WebDriver:PerformActions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def click(self, selector):
        found = self._ask("WebDriver:FindElement", {"using": "css selector", "value": selector})["value"]
        self._ask("WebDriver:ElementClick", {"id": next(iter(found.values()))})

    def set_size(self, width, height):
        """The size of the page, not of the window around it."""
        self._ask("WebDriver:SetWindowRect", {"width": width, "height": height})
        inner = self.script("return [innerWidth, innerHeight]")
        self._ask("WebDriver:SetWindowRect", {"width": 2 * width - inner[0], "height": 2 * height - inner[1]})

    def screenshot(self, path):
        Path(path).write_bytes(base64.b64decode(self._ask("WebDriver:TakeScreenshot", {"full": False})["value"]))

    def console(self):
        """Errors of scripts and styles that Firefox has logged of our pages."""
        self._ask("Marionette:SetContext", {"value": "chrome"})
        try:
            return self.script("""
              return Services.console.getMessageArray().filter((message) => message instanceof Ci.nsIScriptError &&
                /^(file|http):/.test(message.sourceName) && !(message.flags & Ci.nsIScriptError.warningFlag)).map(
                (message) => `${message.errorMessage} (${message.sourceName}:${message.lineNumber})`)""")
        finally:
            self._ask("Marionette:SetContext", {"value": "content"})


@contextlib.contextmanager
def headless_firefox(dark=False):
    program = os.environ.get("MUONWALK_FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")
    if not program:
        print("skipped: there is no firefox (Debian's package firefox-esr)")
        sys.exit(SKIPPED)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        settings = {"marionette.port": port, "ui.systemUsesDarkTheme": int(dark), "layout.css.prefers-color-scheme.content-override": 0 if dark else 1,
                    "browser.shell.checkDefaultBrowser": False, "datareporting.policy.dataSubmissionEnabled": False,
                    "toolkit.telemetry.reportingpolicy.firstRun": False, "app.update.enabled": False,
                    "network.captive-portal-service.enabled": False, "network.connectivity-service.enabled": False,
                    "browser.startup.homepage_override.mstone": "ignore", "services.settings.server": "data:,#"}
        (Path(profile) / "user.js").write_text("".join(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n"
                                                       for name, value in settings.items()), encoding="utf-8")
        process = subprocess.Popen([program, "--headless", "--marionette", "-remote-allow-system-access", "--no-remote", "--profile", profile],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env={**os.environ, "HOME": profile, "MOZ_HEADLESS": "1"})
        try:
            yield _connected(process, port)
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _connected(process, port):
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            return Firefox(port)
        except OSError as error:
            if process.poll() is not None:
                sys.exit(f"Firefox ended with exit code {process.returncode} before it could be spoken to; see that it runs by itself")
            if time.monotonic() > end:
                sys.exit(f"Firefox does not answer on port {port} within {_START_SECONDS} seconds ({error})")
            time.sleep(0.2)
