"""A Chromium without a window, for tests. Where it or Selenium is missing, a test ends with SKIPPED and says so."""

import contextlib
import json
import os
import shutil
import socket
import sys
import tempfile

SKIPPED = 77  # what CMake knows as SKIP_RETURN_CODE

try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    webdriver = None


def _missing():
    if webdriver is None:
        return "python3 has no module selenium (Debian's package python3-selenium)"
    for variable, name, package in (("MUONWALK_CHROMIUM", "chromium", "chromium"),
                                    ("MUONWALK_CHROMEDRIVER", "chromedriver", "chromium-driver")):
        if not _program(variable, name):
            return f"there is no {name} (Debian's package {package})"
    try:
        socket.getaddrinfo("localhost", None)
    except OSError:
        return "the name localhost leads nowhere, by which chromedriver finds Chromium (/etc/hosts)"
    return None


def _program(variable, name):
    """What the build found, or else what the path holds."""
    return os.environ.get(variable) or shutil.which(name)


def _wait_for_pages(browser):
    """ChromeDriver 150 returns from a navigation while the page is still being read, one time in ten on a busy machine: with the page's
    address, and without its text."""
    navigate = browser.get

    def get(address):
        navigate(address)
        WebDriverWait(browser, 60, 0.01).until(lambda _: browser.execute_script("return document.readyState") == "complete",
                                               f"{address} is not read to its end within a minute")

    browser.get = get


@contextlib.contextmanager
def headless_browser():
    """The browser, with the logs of its console and of its requests. Its profile is new, and gone afterwards. Its `get` returns when the
    whole page is there."""
    missing = _missing()
    if missing:
        print(f"skipped: {missing}")
        sys.exit(SKIPPED)
    options = webdriver.ChromeOptions()
    options.binary_location = _program("MUONWALK_CHROMIUM", "chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for argument in ("--headless=new", "--disable-background-networking", "--disable-component-update",
                         "--disable-sync", "--no-first-run", "--disable-dev-shm-usage", f"--user-data-dir={profile}"):
            options.add_argument(argument)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")  # Chromium refuses to run as root within its sandbox
        try:
            browser = webdriver.Chrome(service=Service(_program("MUONWALK_CHROMEDRIVER", "chromedriver")), options=options)
        except WebDriverException as error:
            sys.exit(f"Chromium can't be started ({error.msg.strip()}); see that chromedriver and chromium run by themselves")
        try:
            browser.set_script_timeout(120)  # a busy machine takes its time
            _wait_for_pages(browser)
            # Without the window's focus a page gets no focus events, and no window here is sure to have it.
            browser.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
            yield browser
        finally:
            browser.quit()


def set_size(browser, width, height):
    """The size of the page, as a desktop's or, below 500 pixels, as a phone's."""
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})


def set_media(browser, medium="", **features):
    """What the reader prefers: set_media(browser, prefers_color_scheme="dark"). The rest is the browser's own.
    The medium is the screen or, with medium="print", paper."""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": medium, "features": [
        {"name": name.replace("_", "-"), "value": value} for name, value in features.items()]})


def console_faults(browser):
    """What the console shows as severe since it was last asked."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def request_faults(browser):
    """Requests of our pages since it was last asked that failed, or that left this machine's files. What the browser
    asks for its own pages, before it opens the first of ours, does not count."""
    faults, addresses = [], {}
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        parameters = message["params"]
        if message["method"] == "Network.requestWillBeSent" and parameters["documentURL"].startswith("file:"):
            address = parameters["request"]["url"]
            addresses[parameters["requestId"]] = address
            if not address.startswith(("file:", "data:")):
                faults.append(f"a request leaves the machine's files: {address}")
        if message["method"] == "Network.loadingFailed" and parameters["requestId"] in addresses:
            faults.append(f"a request failed: {addresses[parameters['requestId']]} ({parameters['errorText']})")
    return faults


def too_wide(browser):
    """What makes the page scroll sideways or is cut off at its side, up to three elements, or an empty list."""
    return browser.execute_script("""
      const content = document.getElementById("doc-content") || document.body;
      const clipped = (element) => {
        for (let parent = element.parentElement; parent && parent !== content; parent = parent.parentElement)
          if (getComputedStyle(parent).overflowX !== "visible") return true;
        return false;
      };
      const left = content.getBoundingClientRect().left - 1, right = window.innerWidth + 1;
      const wide = [...content.querySelectorAll("*")].filter((element) => {
        const box = element.getBoundingClientRect();
        return box.width > 0 && (box.left < left || box.right > right) && !clipped(element);
      });
      if (wide.length) return wide.slice(0, 3).map((element) => `${element.tagName} ${element.className}`);
      const scrolls = [document.documentElement, content].some((element) =>
        element.scrollWidth > Math.min(element.clientWidth, window.innerWidth));
      return scrolls ? ["the page"] : [];
    """)
