"""How the figures and drawings of the site look: nothing is cut, all can be told from what is behind it, and all can be read without
scripts, on paper and without motion."""

import re

from contrast import low_contrast
from figure_checks import Figures
from headless_browser import console_faults, request_faults, set_media, set_size, too_wide

SIZES = ((1400, 1000), (1000, 900), (390, 844))


class Looks(Figures):
    def looks(self, numbers):
        for number in numbers:
            self.open(number)
            for size in SIZES:
                set_size(self.browser, *size)
                for element in too_wide(self.browser):
                    self.fault(f"at {size[0]} pixels, the page is too wide because of {element}")
                for sentence in self.browser.execute_script("""
                    return [...document.querySelectorAll(".mw-figure, .mw-drawing")].filter((figure) =>
                      figure.scrollWidth > figure.clientWidth + 1 || figure.getBoundingClientRect().right > innerWidth + 1)
                      .map((figure) => `${figure.className} is cut: ${figure.scrollWidth} pixels in ${figure.clientWidth}`)"""):
                    self.fault(f"at {size[0]} pixels, {sentence}")
            set_size(self.browser, *SIZES[0])
            for scheme in ("light", "dark"):
                set_media(self.browser, prefers_color_scheme=scheme)
                if self.browser.find_elements("css selector", ".mw-figure"):
                    self.faults += [f"{self.page}, {scheme}: {sentence}" for sentence in low_contrast(self.browser, ".mw-figure")]
            set_media(self.browser)
            for sentence in console_faults(self.browser) + request_faults(self.browser):
                self.fault(sentence)

    def without_scripts(self, numbers):
        """The numbers of the lesson's own grid are there without scripts, and nothing that does nothing; and the same on paper."""
        for number in numbers:
            self.open(number)
            figure = "document.querySelector('.mw-figure')"
            set_media(self.browser, medium="print")
            if self.browser.execute_script(f"return [...{figure}.querySelectorAll('input, select')].some((each) => each.checkVisibility())"):
                self.fault("prints controls, which do nothing on paper")
            set_media(self.browser)
            shown = self.browser.execute_script(f"return {figure}.innerText")
            source = (self.site / f"{self.page}.html").read_text(encoding="utf-8")
            body = re.search(r'<figure class="mw-figure.*?</figure>', source, re.DOTALL)[0]
            cells = re.findall(r"<t[dh][^>]*>(?:<button[^>]*>)?([^<]+)", body)
            lost = [cell for cell in cells if re.match(r"[\d.,]+( M?B)?$", cell) and cell not in shown]
            if number in ("06", "09", "13", "14", "15") and (lost or not any(re.match(r"[\d.,]+", cell) for cell in cells)):
                self.fault(f"begins with other numbers with scripts than without: {lost}")
        self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        for number in numbers:
            self.open(number)
            visible = [control for control in self.browser.find_elements("css selector", ".mw-figure :is(input, select, button)")
                       if control.is_displayed() and control.get_dom_attribute("data-step") is None]
            if visible:
                self.fault("has controls without scripts, which do nothing")
            if not self.browser.find_element("css selector", ".mw-figure").text.strip():
                self.fault("shows nothing without scripts")
        self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

    def reduced_motion(self):
        set_media(self.browser, prefers_reduced_motion="reduce")
        self.open("13")
        moves = self.browser.execute_script("return getComputedStyle(document.querySelector('.mwf-part')).transitionDuration")
        self.same("how long a bar moves for who wants no motion", moves, "0s")
        set_media(self.browser)
