"""How well the text of a page can be told from what is behind it, as WCAG 2 counts it."""

_SCRIPT = r"""
  const root = document.querySelector(arguments[0]), least = arguments[1];
  const parse = (colour) => {
    const parts = colour.match(/[\d.]+/g).map(Number);
    if (colour.startsWith("color(srgb")) for (let i = 0; i < 3; ++i) parts[i] *= 255;
    return {rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1};
  };
  const over = (top, below) => top.rgb.map((value, i) => value * top.alpha + below[i] * (1 - top.alpha));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((value) => value / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const canvas = getComputedStyle(document.documentElement).colorScheme.includes("dark") ? [18, 18, 18] : [255, 255, 255];
  const behind = new Map();
  const background = (element) => {
    if (!element) return canvas;
    if (!behind.has(element))
      behind.set(element, over(parse(getComputedStyle(element).backgroundColor), background(element.parentElement)));
    return behind.get(element);
  };
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found = new Map();
  let texts = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || element.closest("script, style, noscript, svg, :disabled, [aria-disabled=true]") ||
        !element.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    ++texts;
    const below = background(element), colour = over(parse(getComputedStyle(element).color), below);
    const [dark, light] = [luminance(below), luminance(colour)].sort((a, b) => a - b);
    const contrast = (light + 0.05) / (dark + 0.05);
    const kind = `${element.tagName.toLowerCase()}.${element.className} ${colour.map(Math.round)} on ${below.map(Math.round)}`;
    if (contrast < least && !found.has(kind)) found.set(kind, [contrast, node.textContent.trim().slice(0, 40)]);
  }
  return [texts, [...found].map(([kind, [contrast, text]]) => `"${text}" has a contrast of ${contrast.toFixed(2)} : 1 (${kind})`)];
"""


def low_contrast(browser, selector="body", least=4.5):
    """A sentence for each kind of text in an element whose colour is too close to its background. Text in pictures and
    on controls that can't be used at the moment is not looked at. Where there is no text at all, that is a fault as well."""
    texts, sentences = browser.execute_script(_SCRIPT, selector, least)
    return sentences if texts else [f"there is no text in {selector}"]
