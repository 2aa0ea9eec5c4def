"""The files that Binder and conda read: as far as they can be run without either."""

import json
import os
import re
import shutil
import subprocess
import unittest

from stand_in_jupyter import LIBRARIES, ROOT, StandInProject

BINDER = ROOT / "binder"


def lines_of(path):
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


def packages_of_the_build():
    rows = [line.split() for line in lines_of(ROOT / "cmake" / "packages.txt")]
    return [row[0] for row in rows if row[0] != "-" and row[2] == "build"]


class Lists(unittest.TestCase):
    def test_apt_txt_is_what_the_build_needs(self):
        path = BINDER / "apt.txt"
        if os.environ.get("BLESS") == "1":
            comments = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
            path.write_text("\n".join([*comments, *packages_of_the_build()]) + "\n", encoding="utf-8")
        self.assertEqual(lines_of(path), packages_of_the_build())

    def test_the_environment_has_its_name_one_channel_and_what_a_reader_needs(self):
        # YAML of three kinds of lines, so that no parser has to be installed: "key: value", "key:", "  - item".
        found, key = {}, None
        for line in lines_of(BINDER / "environment.yml"):
            match = re.fullmatch(r"(\w+):(?: (\S+))?|  - (\S+)", line)
            self.assertTrue(match, f"neither a key nor an item: {line}")
            if match[3]:
                found[key].append(match[3])
            else:
                key = match[1]
                self.assertNotIn(key, found)
                found[key] = match[2] or []
        self.assertEqual(set(found), {"name", "channels", "dependencies"})
        self.assertEqual(found["channels"], ["conda-forge"])
        for package in found["dependencies"]:
            self.assertRegex(package, r"^[a-z0-9-]+(=[0-9]+(\.[0-9]+)*)?$")
        names = [package.split("=")[0] for package in found["dependencies"]]
        self.assertEqual(names, ["jupyterlab", "nbconvert", "xeus-cpp"])
        for telling in (ROOT / "notebooks/make/open_notebooks.py", ROOT / "notebooks" / "README.md"):
            self.assertIn(f"conda activate {found['name']}", telling.read_text(encoding="utf-8"), telling)


class Scripts(StandInProject):
    def setUp(self):
        super().setUp()
        shutil.copytree(BINDER, self.project / "binder")

    def script(self, name, *words, **environment):
        return subprocess.run([self.project / "binder" / name, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=120, check=False, cwd=self.scratch,
                              env={"PATH": str(self.machine), "HOME": str(self.scratch), **environment})

    def test_postBuild_builds_for_any_processor_and_prepares_the_kernel_and_the_notebooks(self):
        done = self.script("postBuild")
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = self.calls.read_text().splitlines()
        self.assertEqual([call for call in calls if call.startswith("cmake")],
                         ["cmake --preset release -DMUONWALK_NATIVE=OFF -DMUONWALK_TESTS=OFF -DMUONWALK_BENCH=OFF --log-level=NOTICE"])
        self.assertIn(f"ninja {LIBRARIES}", calls)
        self.assertTrue((self.own / "notebooks" / self.original.name).is_file())
        argv = json.loads((self.own / "kernels" / "xcpp17" / "kernel.json").read_text())["argv"]
        self.assertIn(f"-I{self.project}", argv)
        self.assertFalse(self.record.exists(), "Jupyter was started")

    def test_the_options_that_postBuild_sets_exist(self):
        project = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
        for name in re.findall(r"-D(\w+)=", (BINDER / "postBuild").read_text(encoding="utf-8")):
            self.assertIn(f"option({name} ", project)


if __name__ == "__main__":
    unittest.main()
