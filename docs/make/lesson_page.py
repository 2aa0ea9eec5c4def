"""Completes the page that Doxygen made of a lesson: what the lesson prints, its pictures, its player, what its bugs print,
hints and answers that open on a click, and the answer to its question."""

import html
import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "sim/classroom"))
import figures  # noqa: E402
import lesson_text  # noqa: E402
import guesses  # noqa: E402
import plain_program  # noqa: E402
from doxygen_filter import fragments, section_id  # noqa: E402
from lesson_graph import builds_on, lesson_graph  # noqa: E402
from lesson_source import LessonError  # noqa: E402
from page_data import script_json  # noqa: E402
from exercises import Broken, exercises  # noqa: E402
from marked_code import MarkedCode  # noqa: E402

_FRAGMENT = re.compile(r'<div class="fragment">.*?</div><!-- fragment -->', re.DOTALL)
_SECTION = re.compile(r'<h1><a class="anchor" id="(\w+)"></a>\s*(.*?)</h1>', re.DOTALL)


def section(anchor, title, content):
    return f'<h1><a class="anchor" id="{anchor}"></a>\n{title}</h1>\n{content}\n'


def output_block(text, label):
    """What a program prints: a <pre> whose text is exactly this; it scrolls by itself, also by keyboard."""
    shown = html.escape(text, quote=False).rstrip("\n")
    shown = shown.replace("✔", '<b class="mw-good">✔</b>').replace("✘", '<b class="mw-bad">✘</b>')
    shown = re.sub(r"^(step \d+ · .*|Lesson \d\d · .*)$", r"<b>\1</b>", shown, flags=re.MULTILINE)
    return f'<pre class="mw-output" tabindex="0" role="region" aria-label="{html.escape(label)}">{shown}\n</pre>'


def _tidy_fragment(fragment):
    """Without the hidden tooltips, which need a script to be seen and would be read aloud and copied."""
    return re.sub(r'<div class="ttc".*?</div></div>\n', "", fragment, flags=re.DOTALL)


def _with_columns(contents):
    """Drawings say how many columns they have, so that the style sheet can fit them to a narrow window."""
    def columns(match):
        wide = max(len(line) for line in html.unescape(re.sub(r"<[^>]*>", "", match[1])).split("\n"))
        return f'<pre class="fragment" style="--mw-columns: {wide}">{match[1]}</pre>'

    return re.sub(r'<pre class="fragment">(.*?)</pre>', columns, contents, flags=re.DOTALL)


def _mark(numbers):
    """Where the text of some steps begins, for the player that follows it; without any, where it ends."""
    return f'<span data-mw-steps="{" ".join(map(str, numbers))}"></span>'


def _with_marks(shown, lines):
    """A block of code in which some lines begin what a step does: {line: numbers of steps}."""
    at = iter(range(shown.count('<div class="line">')))
    return re.sub('<div class="line">', lambda match: f'<div class="line" data-mw-steps="{" ".join(map(str, lines[line]))}">'
                  if (line := next(at)) in lines else match[0], shown)


def _with_code(root, lesson, contents, links, recorded):
    """Code with links and with marks where the text of a step begins; returns that and the code that the player shows."""
    stretches = fragments(lesson)
    made = _FRAGMENT.findall(contents)
    if len(made) != len(stretches):
        raise LessonError(f"{lesson.path}: the page has {len(made)} blocks of code instead of {len(stretches)}; does "
                          "a drawing in the prose look like code?")
    own_names = {block.name for block in lesson.blocks}
    functions = lesson_text.functions_of_steps(lesson, recorded)
    shown = [links.link(_tidy_fragment(fragment), own_names) for fragment in made]
    code = MarkedCode(root, lesson, shown)
    reads = [code.steps_in(at, recorded, functions) for at in range(len(stretches))] + [([], {})]
    left = iter(range(len(stretches)))

    def replace(match):
        at = next(left)
        block = _with_marks(shown[at], reads[at][1])
        if at == 0:
            block = f'<details class="mw-includes"><summary>What it includes</summary>{block}</details>'
        # The prose above a block of code speaks of it; the text of a step ends where that of something else begins.
        mark = _mark(reads[at + 1][0]) if reads[at][0] or reads[at + 1][0] else ""
        return block + mark

    return _FRAGMENT.sub(replace, contents), code.of_steps(recorded, functions)


def packed(recorded):
    """A recording as a page carries it: each message is a row [from, to, kind, elements, bytes, call], and "kinds" says which
    collective, group and type a kind is. docs/player/player.js reads both this and what a lesson records."""
    kinds = []

    def row(move):
        kind = {key: move[key] for key in ("collective", "group", "type")}
        if kind not in kinds:
            kinds.append(kind)
        return [move["from"], move["to"], kinds.index(kind), move["elements"], move["bytes"], move["call"]]

    steps = [{**step, "moves": [row(move) for move in step["moves"]]} for step in recorded["steps"]]
    return {**recorded, "kinds": kinds, "steps": steps}


def player(lesson, recorded, code):
    number = lesson.number
    return (f'<div class="muonwalk-player" id="{lesson.name}_play" data-recording="recording-{number}" data-code="code-{number}"></div>\n'
            '<noscript><p>The player of the run needs JavaScript; what the lesson prints, below, tells of the same run.</p></noscript>\n'
            f'{script_json(f"recording-{number}", packed(recorded))}\n{script_json(f"code-{number}", code)}\n'
            '<script src="player.js"></script>\n')


def bugs_section(lesson):
    items = [f'<details class="mw-bug" id="{lesson.name}_bug_{bug.name}"><summary><code>--bug {bug.name}</code> '
             f"{html.escape(bug.says, quote=False)}</summary>\n{output_block(bug.output, f'What --bug {bug.name} prints')}</details>"
             for bug in lesson_text.bugs(lesson)]
    intro = ("<p>Each of these mistakes is in the program and can be switched on. Open one to see what the check says of it: "
             "the lines that differ from a run without it.</p>")
    return section(f"{lesson.name}_bugs", "Planted bugs", intro + "\n" + "\n".join(items))


def output_section(lesson):
    intro = (f"<p><code>./walk {lesson.number}</code> prints this. A test compares it with the program's output, byte by "
             "byte.</p>")
    expected = lesson_text.expected_text(lesson)
    content = intro + "\n" + guesses.before_output(lesson, expected, output_block(expected, "What the lesson prints"))
    on_gpus = lesson_text.expected_on_gpus(lesson)
    if on_gpus is not None:
        content += ('\n<p>No GPU has printed what follows: stand-ins for CUDA\'s driver and for NCCL have, on a processor.</p>\n'
                    f'<details class="mw-nccl"><summary><code>./walk {lesson.number} --transport nccl</code> prints this.</summary>\n'
                    "<p>A test compares it as well, on machines without a GPU: the stand-ins run the kernels' own source on the "
                    "processor, with memory that the host can't look into. They move the same bytes in the same order, and say "
                    "nothing of speed.</p>\n"
                    f'{output_block(on_gpus, "What the lesson prints over NCCL")}</details>')
    return section(f"{lesson.name}_output", "What it prints", content)


_EXERCISE_END = re.compile(r"Hint: (?P<hint>.*?)(?:\s*Answer: (?P<answer>.*?))?(?P<end>(?:</p>)?\s*</li>)", re.DOTALL)


def _folded(match):
    folds = [("mw-hint", "Hint", match["hint"].strip())]
    if match["answer"]:
        folds.append(("mw-reply", "Answer", match["answer"].strip()))
    return "".join(f'<details class="{kind}"><summary>{name}</summary><p>{text[:1].upper()}{text[1:]}</p></details>'
                   for kind, name, text in folds) + match["end"]


def _fold_hints(lesson, contents):
    """"Hint: …" and "Answer: …" at the end of an exercise open on a click, one after the other."""
    begin = contents.index(f'id="{section_id(lesson.name, "Exercises")}"')
    head, exercises = contents[:begin], contents[begin:]
    exercises, found = _EXERCISE_END.subn(_folded, exercises)
    # A <p> can't hold a <details>: what Doxygen wrapped in a paragraph is unwrapped.
    exercises = re.sub(r"<li><p[^>]*>(.*?)</p>\s*</li>", r"<li>\1</li>", exercises, flags=re.DOTALL)
    if found != 3:
        raise LessonError(f"{lesson.path}: the page has {found} hints instead of 3; each exercise ends with \"Hint: …\"")
    return head + exercises


def _contract(exercise):
    """The prose of a contract: paragraphs, `code`, and what is indented by four blanks as it stands."""
    prose = "\n".join(re.sub(r"^// ?", "", line) for line in exercise.contract[1:])
    parts = []
    for part in re.split(r"\n\s*\n", prose.strip("\n")):
        words = html.escape(part, quote=False)
        if part.startswith("    "):
            words = re.sub("^    ", "", words.replace("`", ""), flags=re.MULTILINE)
            label = html.escape(f"{exercise.title}: what it is given, part {len(parts)}")
            parts.append(f'<pre class="mw-output" tabindex="0" role="region" aria-label="{label}">{words}\n</pre>')
        else:
            parts.append("<p>" + re.sub(r"`([^`]+)`", r"<code>\1</code>", words) + "</p>")
    return "\n".join(parts)


def try_section(lesson):
    """The lesson's exercises, as ./walk try has them; nothing where it has none."""
    try:
        its_own = [each for each in exercises(lesson.path.parents[2]) if each.lesson == lesson.name]
        items = [f'<h2>{html.escape(each.title, quote=False)}</h2>\n{_contract(each)}\n'
                 f'<p><code>./walk try {each.number}</code> puts a file of your own in place, with a stub of '
                 f"<code>{html.escape(each.signature, quote=False)}</code>, builds it and judges it.</p>" for each in its_own]
    except (Broken, OSError) as error:
        raise LessonError(str(error)) from error
    if not items:
        return ""
    intro = ("<p>Write a step of this lesson yourself. What you write is held to the lesson's own reference, bit for bit, and to "
             "the plan: its calls, its bytes, and the most elements that it may hold.</p>")
    return section(f"{lesson.name}_try", "Try it yourself", intro + "\n" + "\n".join(items))


def table_of_contents(contents):
    items = "\n".join(f'<li><a href="#{anchor}">{title}</a></li>' for anchor, title in _SECTION.findall(contents))
    return (f'<nav class="mw-contents" aria-label="On this page"><details open><summary>On this page</summary>'
            f"<ul>{items}</ul></details></nav>")


def navigation(lessons, lesson, where):
    at = lessons.index(lesson)
    parts = []
    if at > 0:
        before = lessons[at - 1]
        parts.append(f'<a rel="prev" href="{before.name}.html"><span>Previous</span>{before.number} · {before.title}</a>')
    else:
        parts.append('<a href="index.html"><span>Back to</span>Start</a>')
    if at + 1 < len(lessons):
        after = lessons[at + 1]
        parts.append(f'<a rel="next" href="{after.name}.html"><span>Next</span>{after.number} · {after.title}</a>')
    else:
        parts.append('<a href="index.html#lessons"><span>The end, for now</span>All lessons</a>')
    return f'<nav class="mw-steps mw-{where}" aria-label="Lessons">{"".join(parts)}</nav>'


def _before_section(contents, anchor, addition):
    mark = f'<h1><a class="anchor" id="{anchor}"></a>'
    if contents.count(mark) != 1:
        raise LessonError(f"the page has no section {anchor}, before which something belongs")
    return contents.replace(mark, addition + mark)


def _below_heading(contents, anchor, addition):
    """Puts something first below the heading of a section."""
    changed, found = re.subn(rf'(<h1><a class="anchor" id="{anchor}"></a>.*?</h1>)', lambda match: f"{match[1]}\n{addition}", contents,
                             flags=re.DOTALL)
    if found != 1:
        raise LessonError(f"the page has no section {anchor}, in which something belongs")
    return changed


_NEEDS = re.compile(r"<p ?>You need to know.*?</p>", re.DOTALL)


def _without_needs(lesson, about):
    """(what a lesson is about, the paragraph of what the reader needs to know)."""
    needed = _NEEDS.search(about)
    if not needed:
        raise LessonError(f'{lesson.path}: its page has no paragraph that begins with "You need to know"')
    return about.replace(needed.group(0), ""), needed.group(0)


def _controls(lesson):
    """What the reader can choose; without a script there is nothing to choose."""
    return (f'<div class="mw-controls" data-lesson="{lesson.name}"><button type="button" class="mw-plain-switch" aria-pressed="false" '
            'title="Without main, plan, predict and the planted bugs">Plain program</button></div>')


def complete(lessons, lesson, contents, material, links):
    """The inside of the page's text block, made complete. `contents` is Doxygen's, and `material` the folder of its recording."""
    recorded = lesson_text.recording(material)
    contents, code = _with_code(lesson.path.parents[2], lesson, contents, links, recorded)

    contents = _below_heading(contents, section_id(lesson.name, "The idea"), player(lesson, recorded, code))
    contents = _before_section(contents, section_id(lesson.name, "Exercises"),
                               output_section(lesson) + bugs_section(lesson))
    contents = figures.complete(lesson, contents, recorded, material.parents[1] / "figures")
    contents = _with_columns(_fold_hints(lesson, contents))
    answer = html.escape(lesson_text.answer(lesson), quote=False)
    contents += try_section(lesson)
    asked = lesson_text.question(lesson)
    contents += section(f"{lesson.name}_answer", "Answer",
                        guesses.before_answer(lesson, asked[:1].upper() + asked[1:], f'<p class="mw-answer">{answer}</p>'))
    contents = plain_program.marked(contents)

    question = html.escape(lesson_text.question(lesson), quote=False)
    question = f'<div class="mw-question"><b>Question</b><p>{question}</p></div>'
    # Before the first piece of code, the includes, stands what the lesson is about, and what the reader needs to know.
    first_code = contents.index('<details class="mw-includes">')
    about, needed = _without_needs(lesson, contents[:first_code])
    return (question + table_of_contents(contents) + about + _controls(lesson) +
            f'<details class="mw-before"><summary>What you need to know</summary>{needed}{lesson_graph(lessons, lesson)}</details>' +
            contents[first_code:] + navigation(lessons, lesson, "bottom"))


__all__ = ["builds_on", "complete", "output_block"]
