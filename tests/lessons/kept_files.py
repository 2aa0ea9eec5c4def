"""What a run writes: its recording and its traces say what it printed, and its table of costs what its transports counted."""

import json
import re
from collections import Counter
from pathlib import Path

import expectations
from expectations import expect, expect_same, fail

def read_json(path):
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        fail(f"{path} can't be read as JSON: {error}")
        return None


def ranks_in(text, all_ranks):
    """ "every rank", "rank 2", "ranks 0–3", "ranks 0, 2, 3"; of "0 and 3 more" nobody but the first is known."""
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if text == "every rank":
        return range(all_ranks)
    if "more" in text:
        return numbers[:1]
    return range(numbers[0], numbers[1] + 1) if "–" in text else numbers


def number_of(text):
    return int(text.replace(",", ""))


SPAN = r"([\d,]+(?:–[\d,]+)?)"  # of ranks that are drawn together: from the least to the most
COST_ROW = re.compile(rf"(?:cost  |      ) +(\w+) over ([\w ]+), (\w+)(?: × {SPAN})? +(every rank|ranks? [\d–, ]+?|\d+ (?:and|\+) \d+ more) +"
                      rf"(?:[\d,]+ B +)?{SPAN} B +{SPAN} +✔")
COST_NAME = re.compile(rf" +\w+ over [\w ]+, \w+(?: × {SPAN})?")


def span_of(text):
    numbers = [number_of(number) for number in text.split("–")]
    return numbers[0], numbers[-1]


def expect_cost_table(printed, ledgers):
    """The first table of costs says what the transports counted. A long name has a line to itself there."""
    lines = printed.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith("cost ")), len(lines))
    rows, name = 0, ""
    for line in lines[begin + 1:]:
        if not line.startswith("        "):
            break
        if COST_NAME.fullmatch(line):
            name = line
            continue
        row, name = COST_ROW.fullmatch(name + line), ""
        if not row:
            continue
        rows += 1
        collective, group, element_type, calls, who, sent, messages = row.groups()
        said = {"calls": span_of(calls or "1"), "bytes": span_of(sent), "messages": span_of(messages)}
        counted = [ledgers[rank].get((group, collective, element_type)) for rank in ranks_in(who, len(ledgers))]
        for what, (least, most) in said.items():
            found = sorted(one[what] if one else 0 for one in counted)
            right = found[0] >= least and found[-1] <= most if "more" in who else (found[0], found[-1]) == (least, most)
            expect(right, f"the transports counted {found[0]} to {found[-1]} {what}, but the table says\n    {line}")
    if begin < len(lines) and (row := re.fullmatch(rf"cost    sent, each call as predicted +every rank +{SPAN} B +{SPAN} +✔", lines[begin])):
        for text, what in zip(row.groups(), ("bytes", "messages")):
            sums = [sum(line[what] for line in ledger.values()) for ledger in ledgers]
            expect((min(sums), max(sums)) == span_of(text), f"the transports counted {min(sums)} to {max(sums)} {what}, but one line says\n    {lines[begin]}")
        rows += 1
    expect(rows or begin == len(lines) or not any(line["messages"] for ledger in ledgers for line in ledger.values()),
           "no row of the table of costs could be read")


def ledgers_of(trace):
    """For each rank: (group, collective, type) → calls, bytes and messages, as the transports counted them."""
    return [{(line["group"], line["collective"], line["type"]): {key: line[key] for key in ("calls", "bytes", "messages")} for line in ledger}
            for ledger in trace["muonwalk"]["ledger"]]


def expect_trace(trace, ok=True):
    """The trace of all ranks: what its slices and arrows tell is what the transports counted."""
    about = trace["muonwalk"]
    expect(about["ok"] == ok, f"the trace says that the run was {'right' if about['ok'] else 'wrong'}")
    names = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    threads = {(event["pid"], event["tid"]): event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    expect(sorted(names) == list(range(about["ranks"])), "the trace has not one process per rank")
    for rank, ledger in enumerate(ledgers_of(trace)):
        who = f"rank {rank}"
        expect(names.get(rank, "").startswith(who), f"{who} is called something else in the trace")
        expect(about["dropped_events"][rank] == 0, f"{who} dropped events of its trace")
        mine = [event for event in trace["traceEvents"] if event["pid"] == rank]
        seen, busy, arrows = {}, [], sum(event["ph"] == "s" for event in mine)
        for event in mine:
            if event["ph"] != "X":
                continue
            thread, kind = threads.get((rank, event["tid"])), event["cat"]
            if kind in ("communication", "computation"):
                expect(thread == kind, f"{who}: a slice of {kind} lies on the thread {thread}")
                busy.append((round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)))
            if kind == "communication":
                args = event["args"]
                line = seen.setdefault((args["group"], args["collective"], args["type"]), {"calls": 0, "bytes": 0, "messages": 0})
                line["calls"] += 1
                line["bytes"] += args["bytes"]
                line["messages"] += args["messages"]
        expect(busy, f"{who} did nothing in its trace")
        expect(seen == ledger, f"{who}: the slices are\n    {seen}\nand the transports counted\n    {ledger}")
        messages = sum(line["messages"] for line in ledger.values())
        expect(arrows == messages, f"{who}: {arrows} arrows leave it, and {messages} messages did")
        busy.sort()
        # A rank is one thread: it computes or it is in a call. A microsecond's third digit may be rounded either way.
        expect(all(end <= begin + 1 for (_, end), (begin, _) in zip(busy, busy[1:])), f"{who}: computation and communication overlap")


def is_quiet(step):
    """Of a quiet step nothing is printed; its lines, if any, come after it."""
    return not step["lines"] or not step["lines"][0].startswith("step ")


def expect_blocks(what, step, tensors):
    """What the ranks hold: parts of tensors that are in the list, with as many values as elements, each in a colour."""
    for block in (block for of_rank in step["holds"] for block in of_rank):
        name, size = f"{what}, {block['name']}", block["rows"] * block["cols"]
        extent = {"rows": block["rows"], "columns": block["cols"], "elements": size}.get(block["unit"])
        expect(0 <= block["begin"] <= block["end"] <= block["of"], f"{name} is not part of its whole")
        expect(extent in (None, block["end"] - block["begin"]), f"{name} does not have the extent of its range")
        expect(block["values"] is None or len(block["values"]) == size, f"{name} has not as many values as elements")
        expect(block["values"] is None or len(block["digest"]) == 16, f"{name} has values and no digest")
        at = 0
        for tensor, begin, end, from_element in block.get("spans", [[block["tensor"], 0, block["cols"], 0]]):
            expect(at <= begin < end <= block["cols"] or size == 0 or not block["cols"], f"{name} has a span that is not in order")
            expect(tensors[tensor]["colour"] is not None and from_element >= 0, f"{name} has a span without a colour")
            at = end


def expect_moves(what, step, ranks):
    """Every move is between two ranks of its group; their sums are what the step prints of each rank."""
    sent, received, messages = Counter(), Counter(), Counter()
    for move in step["moves"]:
        size = {"float32": 4, "bfloat16": 2}.get(move["type"], 1)
        source, target = move["from"], move["to"]
        if not expect(source != target and 0 <= min(source, target) and max(source, target) < len(ranks), f"{what} has a move to nobody"):
            return
        expect(move["bytes"] == size * move["elements"], f"{what} has a move whose bytes are not those of its elements")
        group = "pp" if move["group"] == "first and last stage" else move["group"]
        differ = {kind for kind in ("dp", "tp", "pp") if ranks[source][kind] != ranks[target][kind]}
        expect(group == "world" or differ == {group}, f"{what} has a move over {group} between ranks {source} and {target}, which differ in {differ}")
        sent[source] += move["bytes"]
        received[target] += move["bytes"]
        messages[source] += 1
    said = {}
    for line in step["lines"]:
        row = re.fullmatch(rf"  (.+?) sent {SPAN} B in {SPAN} messages? and received {SPAN} B", line)
        if not row:
            continue
        who = ranks_in(row[1], len(ranks))
        said.update(dict.fromkeys(who))
        for text, counted in zip(row.groups()[1:], (sent, messages, received)):
            found = [counted[rank] for rank in who]
            expect((min(found), max(found)) == span_of(text), f"{what} says\n    {line}\nbut its moves add up to {min(found)} to {max(found)}")
    expect(said or not messages or is_quiet(step), f"{what} does not say what its ranks sent")


def expect_recording(lesson, recording, printed, ledgers):
    """The recording says what the run said, line by line, and moves what its ranks sent, byte by byte."""
    about, ranks, steps = recording["lesson"], recording["ranks"], recording["steps"]
    expect((recording["format"], recording["version"], recording["ok"]) == ("muonwalk-recording", 1, True), "the recording of a good run is not ok")
    expect((about["name"], about["number"]) == (lesson.name, lesson.name[7:9]), f"the recording is of {about['name']}")
    sizes = recording["grid"]
    places = [(pp, dp, tp) for pp in range(sizes["pp"]) for dp in range(sizes["dp"]) for tp in range(sizes["tp"])]
    expect(sorted((rank["pp"], rank["dp"], rank["tp"]) for rank in ranks) == places and [rank["rank"] for rank in ranks] == list(range(len(places))),
           f"the recording has ranks {ranks}, which are not those of its grid")
    expect(steps and [step["number"] for step in steps] == list(range(1, len(steps) + 1)), "the steps are not numbered in order")
    if expectations.failures:
        return
    quiet = any(map(is_quiet, steps))
    recorded = recording["before"] + [line for step in steps for line in step["lines"]] + recording["after"]
    lines = printed.splitlines()
    expect(recording["heading"] == lines[0], "the heading is not the first line that is printed")
    # Of quiet steps only the first are recorded; of two layouts, the first one is.
    expect_same("the recording: ", "recorded", "\n".join(recorded), "printed", "\n".join(lines[:len(recorded)]))
    expect(quiet or len(recorded) == len(lines), f"the recording has {len(recorded)} lines, but {len(lines)} are printed")
    moved = Counter()
    for step in steps:
        what = f"step {step['number']} of the recording"
        expect(len(step["holds"]) == len(step["says"]) == len(ranks), f"{what} has not a list for every rank")
        title = is_quiet(step) or step["lines"][0].partition(" · ")[2]
        expect(title is True or title == step["title"], f"{what} does not begin with its title")
        expect_blocks(what, step, recording["tensors"])
        expect_moves(what, step, ranks)
        for move in step["moves"]:
            moved[move["from"], move["group"], move["collective"], move["type"]] += move["bytes"]
    sent = Counter({(rank, *key): line["bytes"] for rank, ledger in enumerate(ledgers) for key, line in ledger.items()})
    for key in moved | sent:
        expect(moved[key] == sent[key] or quiet and moved[key] < sent[key],
               f"{key}: the moves of the recording add up to {moved[key]} B, but the transports counted {sent[key]} B")
    expect(moved or not +sent, "the recording has no move")


def expect_digests(recording):
    """With --verbose 2 every digest that is printed is that of a block, in the same order."""
    for step in recording["steps"]:
        printed = [line.split()[1] for line in step["lines"] if line.strip().startswith("digest ")]
        recorded = [block["digest"] for of_rank in step["holds"] for block in of_rank if block["digest"] is not None]
        if not is_quiet(step):
            expect(printed == recorded, f"step {step['number']}: the digests that are printed are not those of the blocks")
