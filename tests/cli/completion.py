"""Tests the completion of command lines: by `simverbs complete`, and in shells.

    SIMVERBS=build/dev/bin/simverbs ... python3 completion.py Candidates     (as commands.py)
"""

import os
import re
import shutil
import subprocess
import unittest

import operators
from commands import PATIENCE_S, SIMVERBS


class Candidates(operators.World):
    def complete(self, line):
        """The candidates for a line, and what the shell is asked for besides. The last word is
        begun; with a blank at the end it is empty."""
        text = self.simverbs("complete", "--", *line.split(), *([""] if line.endswith(" ") else []))
        self.assertEqual(text[0], 0, text)
        words = [each.partition("\t")[0] for each in text[1].splitlines()]
        others = [each for each in words if each.startswith(":")]
        return [each for each in words if each not in others], "".join(others)

    def help_of(self, *words):
        return self.simverbs(*words, "--help")[1]

    def below(self, *words):
        told = self.help_of(*words).partition("Subcommands:\n")[2].partition("\n\n")[0]
        return re.findall(r"^  ([a-z_]+)\b", told, re.M)

    def test_are_the_commands_of_each_help(self):
        seen = 0
        left = [()]
        while left:
            words = left.pop()
            below = self.below(*words)
            found = self.complete(" ".join([*words, ""]))[0]
            self.assertEqual([each for each in found if each in below], below, words)
            options = set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)",
                                     self.help_of(*words).partition("Options:\n")[2], re.M))
            line = " ".join([*words, "--"]) if words[:1] != ("on",) else "on --"
            dashed = set(self.complete(line)[0])
            self.assertEqual(dashed & options, options, words)
            left += [(*words, name) for name in below]
            seen += 1
        self.assertGreater(seen, 45)
        self.assertNotIn("complete", self.complete("")[0])  # a shell's, not a person's

    def test_are_those_that_begin_so(self):
        self.assertEqual(self.complete("st"), (["status"], ""))
        self.assertEqual(self.complete("fabric co"), (["counters"], ""))
        self.assertEqual(self.complete("nosuch"), ([], ""))
        self.assertEqual(self.complete("exec --pers"), (["--personality"], ""))

    def test_options_are_not_offered_twice(self):
        self.assertNotIn("--seed", self.complete("exec --seed 7 --")[0])
        self.assertIn("--set", self.complete("scenario --set a=1 --")[0])
        self.assertEqual(self.complete("status --json --")[0], ["--help", "--world"])

    def test_values(self):
        self.assertEqual(self.complete("exec --personality c"), (["connectx6"], ""))
        self.assertEqual(self.complete("up pair --sm="),
                         (["--sm=startup", "--sm=sweep", "--sm=none"], ""))
        self.assertIn("serial", self.complete("exec --schedule ")[0])
        self.assertNotIn("serial", self.complete("up pair --schedule ")[0])
        self.assertIn("UD", self.complete("viz qp --service ")[0])
        self.assertEqual(self.complete("completion "), (["bash", "zsh", "fish"], ""))
        self.assertEqual(self.complete("topology convert pair --to y"), (["yaml"], ""))
        self.assertEqual(self.complete("exec --seed "), ([], ""))

    def test_files_and_folders_are_the_shell_s(self):
        for line, others in (("explain ", ":files"), ("exec --trace ", ":files"),
                             ("exec --trace=", ":files"), ("viz qp -o ", ":files"),
                             ("exec --coverage ", ":folders"), ("viz coverage ", ":files"),
                             ("lab --exercises ", ":folders"), ("lab list ", ":folders")):
            self.assertEqual(self.complete(line)[1], others, line)

    def test_topologies_and_scenarios(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)  # where there is no folder `scenarios`
        found, others = self.complete("up ")
        self.assertEqual(others, ":files")
        self.assertLess({"pair", "star:", "fat-tree:", "torus:"}, set(found))
        for line, ending in (("up scenarios/topologies/", ".yaml"),
                             ("scenario scenarios/library/status_", ".yaml"),
                             ("exec --scenario scenarios/library/", ".yaml"),
                             ("up --scenario scenarios/library/", ".yaml"),
                             ("exec --topology scenarios/topologies/", "")):
            found = self.complete(line)[0]
            self.assertTrue(found and any(each.endswith(ending) for each in found), line)

    def test_hosts_of_topologies(self):
        self.assertEqual(self.complete("run star:3 h")[0], ["h0=", "h1=", "h2="])
        self.assertEqual(self.complete("run star:3 h0=true h1")[0], ["h1="])
        self.assertEqual(self.complete("exec --topology ring:3 --host ")[0], ["h0", "h1", "h2"])
        self.assertEqual(self.complete("exec --host ")[0], ["h0", "h1"])
        self.assertEqual(self.complete("run nosuch h")[0], [])

    def test_hosts_and_names_of_a_running_world(self):
        self.assertEqual(self.complete("on --world w ")[0], [])
        self.up()
        self.assertEqual(self.complete("on --world w ")[0], ["h0", "h1"])
        self.assertEqual(self.complete("on --world=w h1")[0], ["h1"])
        self.assertEqual(self.complete("status --world ")[0], ["w"])
        self.assertEqual(sorted(self.complete("fabric link --world w ")[0]), ["h0-s0", "h1-s0"])
        self.assertIn("down", self.complete("fabric link --world w h0-s0 ")[0])
        self.assertIn("h0:1", self.complete("fabric port --world w ")[0])
        self.assertLess({"h0", "s0", "s0:1", "h0-s0"},
                        set(self.complete("fabric show --world w ")[0]))

    def test_exercises(self):
        found = self.complete("lab check 0")[0]
        self.assertGreater(len(found), 5)
        self.assertRegex(found[0], r"^01_")

    def test_programs_are_the_shell_s(self):
        for line in ("exec -- ", "exec ", "exec --warn ", "on h0 ", "on h0 -- ", "check -- ",
                     "doctor -- "):
            self.assertEqual(self.complete(line)[1], ":commands", line)
        for line in ("exec -- ls ", "exec ls --seed ", "on h0 ls -", "check -- ls "):
            self.assertEqual(self.complete(line), ([], ":files"), line)


class Shells(operators.World):
    """The scripts, in shells that have no configuration."""

    def setUp(self):
        super().setUp()
        self.environment["PATH"] = f"{os.path.dirname(SIMVERBS)}:{self.environment['PATH']}"
        self.environment["HOME"] = self.folder
        for name in ("trace_a", "trace b"):
            self.write(name, "")

    def script(self, shell):
        status, text = self.simverbs("completion", shell)
        self.assertEqual(status, 0)
        return self.write(f"script.{shell}", text)

    def run_shell(self, *words, **how):
        if shutil.which(words[0]) is None:
            self.skipTest(f"needs {words[0]}")
        return subprocess.run(words, env=self.environment, cwd=self.folder, text=True,
                              capture_output=True, timeout=PATIENCE_S, check=True,
                              **how).stdout.splitlines()

    def bash(self, line):
        return self.run_shell(
            "bash", "--norc", "-c",
            f'source "{self.script("bash")}"; COMP_LINE="$1" COMP_POINT=${{#1}}; '
            'COMP_WORDBREAKS=$\' \\t\\n"\\\'><=;|&(:\'; _simverbs; printf "%s\\n" "${COMPREPLY[@]}"',
            "bash", line)

    def test_bash(self):
        self.assertEqual(self.bash("simverbs sta"), ["status"])
        self.assertEqual(self.bash("simverbs exec --personality=c"), ["connectx6"])
        self.assertEqual(self.bash("simverbs run star:2 h1"), ["h1="])
        self.assertEqual(self.bash("simverbs explain trace"), ["trace b", "trace_a"])
        self.assertEqual(self.bash("simverbs exec --trace=trace_"), ["trace_a"])
        self.assertIn("ls", self.bash("simverbs exec -- ls"))
        self.assertEqual(self.bash(f"{SIMVERBS} up star"), ["star:"])
        self.assertEqual(self.bash("simverbs fabric port nosuch"), [""])

    def test_bash_accepts_it(self):
        self.run_shell("bash", "-n", self.script("bash"))

    def test_fish(self):
        script = self.script("fish")

        def fish(line):
            return self.run_shell("fish", "--no-config", "-c",
                                  f"source {script}; complete -C $argv[1]", line)
        self.assertEqual(fish("simverbs sta"), ["status\tWhat served worlds are doing"])
        self.assertEqual(fish("simverbs exec --personality c"), ["connectx6"])
        self.assertEqual(fish("simverbs run star:2 h1"), ["h1="])
        self.assertEqual([each.partition("\t")[0] for each in fish("simverbs explain trace_")],
                         ["trace_a"])
        self.assertTrue(any(each.startswith("ls") for each in fish("simverbs exec -- ls")))

    def test_zsh(self):
        script = self.script("zsh")
        # Runs an interactive zsh in a pseudo-terminal, and reads the line after TAB.
        program = """
            zmodload zsh/zpty
            zpty shell zsh -f -i
            zpty -w shell "autoload -U compinit; compinit -u -D; source $1"
            zpty -w shell "show() { print -r -- \\"LINE=\\$BUFFER=\\" }; zle -N show"
            zpty -w shell "bindkey '^I' expand-or-complete '^X' show; print -r -- rea''dy"
            zpty -r -m shell out '*ready*'
            zpty -n -w shell "$2"$'\\t\\x18'
            zpty -r -m shell out '*LINE=*=*'
            print -r -- "$out"
        """
        for line, whole in (("simverbs sta", "simverbs status "),
                            ("simverbs exec --personality c", "--personality connectx6 "),
                            ("simverbs explain trace_", "explain trace_a ")):
            text = "\n".join(self.run_shell("zsh", "-f", "-c", program, "zsh", script, line))
            self.assertRegex(text, f"LINE=.*{whole}")


if __name__ == "__main__":
    unittest.main()
