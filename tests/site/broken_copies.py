"""A check that can't fail is a defect: copies of the site of which one file is broken, on which a check has to say so."""

import sys
import tempfile
from pathlib import Path

from headless_browser import headless_browser, set_size
from served import served


def copy_with(site, folder, pattern, change):
    """A copy of the site, by links, of which one file is another: the first whose name is like the pattern."""
    name = next(site.glob(pattern)).name
    for path in site.iterdir():
        if path.name != name:
            (folder / path.name).symlink_to(path)
    text = (site / name).read_text(encoding="utf-8")
    changed = change(text)
    if changed == text:
        sys.exit(f"{Path(sys.argv[0]).name}: {name} is not as this test expects it, so it can't be broken")
    (folder / name).write_text(changed, encoding="utf-8")


def looking(browser, make):
    """Asks a check of what `make(folder)` gives to look at a copy with."""
    def look(folder, check):
        looks = make(folder)
        check(looks)
        browser.get("about:blank")
        return looks.faults

    return look


def not_noticed(site, broken, look):
    """A sentence for each of [(what, file, change, check, what is said), …] that is not noticed. `look(folder, check)` asks a check
    of a folder, and returns the faults that it found."""
    sentences = []
    for what, name, change, check, said in broken:
        with tempfile.TemporaryDirectory() as folder:
            copy_with(site, Path(folder), name, change)
            faults = look(Path(folder), check)
            if not any(said in sentence for sentence in faults):
                sentences.append(f"{what} is not noticed; this was: {faults[:5]}")
    return sentences


def site_test(size, check, broken, look):
    """Tests the site whose folder the command line names, with one browser: `check(browser, site, address where it is served)`
    returns faults; on copies with what is `broken` in them, `look(browser)` has to find some."""
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "index.html").exists():
        sys.exit(f"{Path(sys.argv[0]).name} takes the folder of the built site")
    site = Path(sys.argv[1]).resolve()
    with headless_browser() as browser, served(site) as address:
        set_size(browser, *size)
        faults = check(browser, site, address) + not_noticed(site, broken, look(browser))
    for sentence in faults:
        print(sentence)
    print(f"{len(broken)} broken copies: {len(faults)} faults")
    sys.exit(1 if faults else 0)
