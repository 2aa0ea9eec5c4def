"""How the style sheets make each kind of element look, as lines that can be kept: what is not the browser's own, nor taken over from what is around
it. Sizes that follow from the letters of a machine are not among them."""

# looks(root) gives {kind of element: its properties}, of elements that are seen, and of what a style sheet puts before and behind them.
LOOKS = """
const OWN = ("display position visibility background-color background-image background-size border-top border-right border-bottom border-left border-radius outline-style " +
  "opacity overflow-x overflow-y text-decoration-line z-index box-shadow padding margin-top margin-bottom gap flex-wrap flex-direction flex-grow flex-shrink align-items " +
  "align-self justify-content max-width min-width min-height max-height content transition-duration vertical-align box-sizing top scroll-margin-top isolation float clear " +
  "container-type overflow-wrap column-count stroke-width stroke-dasharray appearance").split(" ");
const TAKEN = "color font-size font-weight font-style text-align white-space cursor list-style-type pointer-events fill stroke text-transform color-scheme text-shadow".split(" ");
const bare = document.createElement("iframe");
document.body.append(bare);
const usual = {};
const usualOf = (node) => {
  const name = node.tagName.toLowerCase() + (node.type || "");
  if (usual[name]) return usual[name];
  const element = bare.contentDocument.createElementNS(node.namespaceURI, node.tagName.toLowerCase());
  if (node.tagName === "INPUT") element.type = node.type;
  bare.contentDocument.body.append(element);
  const style = bare.contentWindow.getComputedStyle(element);
  return usual[name] = Object.fromEntries(OWN.concat(TAKEN).map((property) => [property, style.getPropertyValue(property)]));
};
const looks = (root) => {
  const found = {};
  for (const node of [root, ...root.querySelectorAll("*")]) {
    if (["SCRIPT", "STYLE", "DEFS", "IFRAME"].includes(node.tagName)) continue;
    const kind = (each) => each.tagName.toLowerCase() + (each.id && each.id.startsWith("mw-") ? `#${each.id}` : "") + [...each.classList].map((name) => `.${name}`).join("") +
      ["aria-pressed", "aria-expanded", "aria-current", "aria-selected", "open"].filter((name) => each.hasAttribute(name)).map((name) => `[${name}=${each.getAttribute(name)}]`).join("");
    const name = `${kind(node.parentElement)} > ${kind(node)}`;
    if (found[name]) continue;
    if (!node.checkVisibility()) { found[name] = "not seen"; continue; }
    const around = getComputedStyle(node.parentElement), words = [];
    const say = (style, before, compare) => {
      for (const property of OWN) {
        const value = style.getPropertyValue(property);
        if (value !== compare[property] && !/\\.\\d{3,}px|^0px none/.test(value)) words.push(`${before}${property}: ${value}`);
      }
    };
    const style = getComputedStyle(node);
    say(style, "", usualOf(node));
    for (const property of TAKEN) {
      const value = style.getPropertyValue(property);
      if (value !== around.getPropertyValue(property) && value !== usualOf(node)[property]) words.push(`${property}: ${value}`);
    }
    for (const pseudo of ["::before", "::after"]) {
      const its = getComputedStyle(node, pseudo);
      if (!["none", "normal"].includes(its.content)) {
        words.push(...["content", "display", "position", "color", "background-image", "box-shadow", "font-size", "font-weight"].map((property) => `${pseudo} ${property}: ${its.getPropertyValue(property)}`));
      }
    }
    found[name] = words.join("; ");
  }
  bare.remove();
  return found;
};
"""


def looks_of(browser, set_up, situations, root="document.body"):
    """Lines for each kind of element in the first situation, and for the others what is another there. `situations` are (name, what brings
    the page into it); `set_up` is called before each."""
    lines, first = [], None
    for name, bring in situations:
        set_up()
        bring()
        found = browser.execute_script(LOOKS + f"return looks({root})")
        lines.append(f"=== {name}")
        lines += [f"{kind}: {look}" for kind, look in sorted(found.items()) if (first is None and look not in ("", "not seen")) or (first is not None and first.get(kind) != look)]
        first = first or found
    return lines
