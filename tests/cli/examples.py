"""Every --help must end with an example, and each example must do what it shows.

    SIMVERBS=build/dev/bin/simverbs ... python3 examples.py Examples     (as commands.py)
"""

import os
import re
import shutil
import subprocess
import unittest

import commands
import operators
from commands import PATIENCE_S, SIMVERBS

# Examples that fail as intended: a scenario whose expectation fails, an exercise without an answer.
FAIL = {"scenario", "sweep", "lab check"}
WITHOUT_END = {"lab watch"}
PING = """
connections: {c: {between: [h0, h1]}}
hosts:
  h0: {do: [{send: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}
  h1: {do: [{receive: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}
"""


class Examples(operators.World):
    def examples(self, words=()):
        """The words of each command and its example."""
        status, text = self.simverbs(*words, "--help")
        self.assertEqual(status, 0, words)
        last = text.rstrip("\n").split("\n\n")[-1]
        self.assertTrue(last.startswith("Example:\n  "), f"{words}: {last}")
        yield " ".join(words), last.partition("\n")[2]
        listed = text.partition("Subcommands:\n")[2].partition("\n\n")[0]
        for name in re.findall(r"^  ([a-z_]+)\b", listed, re.M):
            yield from self.examples((*words, name))

    def test_stand_at_the_end_of_each_help(self):
        found = dict(self.examples())
        self.assertGreater(len(found), 45)
        for words, example in found.items():
            self.assertIn(f"simverbs {words}".strip(), example)

    def prepare(self):
        """What the examples name: a world of star:2, files, an exercise that was begun."""
        self.environment["PATH"] = f"{os.path.dirname(SIMVERBS)}:{self.environment['PATH']}"
        self.write("failing.yaml", commands.FLUSHED)
        self.write("ping.yaml", PING)
        self.simverbs("scenario", f"{self.folder}/failing.yaml", "--trace",
                      f"{self.folder}/run.jsonl")
        status, text = self.simverbs("up", "star:2")
        self.assertEqual(status, 0, text)
        for place in (self.folder, f"{self.folder}/class/student"):
            os.makedirs(place, exist_ok=True)
            self.assertEqual(self.simverbs("lab", "start", "1", place)[0], 0)

    def run_example(self, text):
        ended = subprocess.run(["bash", "-c", text], env=self.environment, cwd=self.folder,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               timeout=2 * PATIENCE_S, check=False)
        return ended.returncode, ended.stdout

    def test_run(self):
        self.prepare()
        found = dict(self.examples())
        down = found.pop("down")
        for words, example in found.items():
            if words in WITHOUT_END or words.startswith("lab") and shutil.which("cc") is None:
                continue
            if "--python" in example:  # beside the answer in C
                example += " elsewhere" if os.mkdir(f"{self.folder}/elsewhere") is None else ""
            status, text = self.run_example(example)
            self.assertEqual(status, 1 if words in FAIL else 0, f"{example}\n{text}")
        self.assertEqual(self.run_example(down)[0], 0)


if __name__ == "__main__":
    unittest.main()
