#!/usr/bin/env python3
"""Holds muonwalk.js to what programs for this machine print, with ranks that are fibers: every lesson, with its recording, in both
precisions; every planted bug of lessons before 10; faults; and products in which code that rounds twice is found out.

    module_test.py node|browser MODULE PROGRAMS SITE_TESTS

MODULE is muonwalk.js, PROGRAMS the folder of the programs, SITE_TESTS that of the module headless_browser. All runs are in one
instance, one after the other."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

RECORDING = "run.json"
SIZES = {"lesson_09_full_step": [["--toy"], ["--small", "--steps", "3"]]}  # of lessons whose own size takes long in a browser
RUN_ALL = """
const results = jobs => jobs.map(([lesson, ...args]) => {
  const began = performance.now();
  const result = module.run(lesson, args);
  return {...result, seconds: (performance.now() - began) / 1000};
});"""


def natively(programs, command):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([programs / command[0], "--world", "fibers", *command[1:]][:None if "lesson" in command[0] else 1],
                              cwd=folder, capture_output=True, timeout=600, stdin=subprocess.DEVNULL)
        recording = Path(folder, RECORDING)
        return {"exitCode": done.returncode, "stdout": done.stdout.decode(), "stderr": done.stderr.decode(),
                "recording": recording.read_text() if recording.exists() else None}


def said(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout


def jobs(programs):
    for program in sorted(programs.glob("lesson_*")):
        number = program.name.split("_")[1]
        if not (number < "10" or "11" <= number <= "17" or number == "19"):
            continue
        multiplies = "this lesson multiplies no matrices" not in said(program, "--help")
        for size in SIZES.get(program.name, [[]]):
            own = [program.name, *size, *(["--products", "chain"] if multiplies else [])]
            yield [*own, "--record", RECORDING]
            if multiplies:
                yield [*own, "--precision", "bf16"]
        if number < "10":
            for line in said(program, "--list-bugs").splitlines():
                yield [*own, "--bug", line.split()[0]]
    toy = ["lesson_09_full_step", "--toy", "--products", "chain"]
    yield [*toy, "--turns", "7", "--verbose", "2"]
    for wrong in (["--fault", "throw:1"], ["--fault", "hang:1"], ["--tp", "5"], ["--world", "processes"]):
        yield [*toy, *wrong]
    yield toy
    yield ["hard_products"]


def in_node(module, commands):
    script = f"""require({json.dumps(str(module))})().then(module => {{ {RUN_ALL}
      process.stdout.write(JSON.stringify(results({json.dumps(commands)}))); }});"""
    done = subprocess.run(["node", "-"], input=script, capture_output=True, text=True, timeout=1200)
    if done.returncode != 0:
        sys.exit(f"node ended with {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def in_browser(module, commands):
    with tempfile.TemporaryDirectory() as folder, headless_browser() as browser:
        page = Path(folder, "page.html")
        page.write_text(f'<!doctype html><meta charset="utf-8"><script src="{module.as_uri()}"></script>')
        browser.get(page.as_uri())
        began = "const done = arguments[arguments.length - 1], began = performance.now();"
        start = browser.execute_async_script(
            f"{began} muonwalk().then(module => {{ window.module = module; done(performance.now() - began); }});")
        print(f"        the module starts in {start / 1000:.3f} s")
        results = [browser.execute_script(f"{RUN_ALL} return results([arguments[0]])[0];", command) for command in commands]
        strange = [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]]
        if strange:
            sys.exit(f"the browser's console has {strange[:3]}")
        return results


def main():
    where, module, programs = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3])
    commands = list(jobs(programs))
    failures = 0
    for command, got in zip(commands, {"node": in_node, "browser": in_browser}[where](module, commands)):
        expected = natively(programs, command)
        own_world = "processes" not in command
        same = [part for part in ("exitCode", "stdout", "recording", "stderr")
                if (own_world and (part != "stderr" or expected["exitCode"] > 1)) and got[part] != expected[part]]
        if not own_world and (got["exitCode"] != 2 or "--world processes is not in this program" not in got["stderr"]):
            same = ["stderr"]
        if "--bug" in command and got["exitCode"] != 1:
            same.append("bug")
        print(f"{'FAILED' if same else 'ok':<8}{got['seconds']:6.3f} s  {' '.join(command)}")
        for part in same:
            failures += 1
            print(f"  {part} was\n{str(got.get(part))[:1500]}\n  and natively\n{str(expected.get(part))[:1500]}")
    print(f"{len(commands)} runs, {failures} differences")
    return failures > 0


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[4])
    from headless_browser import headless_browser
    sys.exit(main())
