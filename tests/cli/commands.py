"""Tests the messages and exit statuses of the simverbs command.

    SIMVERBS=build/dev/bin/simverbs LIBRARIES=build/dev/lib SCENARIOS=scenarios/library \
        python3 commands.py Worlds
"""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import time
import unittest

SIMVERBS = os.environ["SIMVERBS"]
SCENARIOS = os.environ["SCENARIOS"]
LIBRARIES = os.environ["LIBRARIES"]
PATIENCE_S = 60

# A peer without a receive, and endless retries: the run takes long, and `stop` keeps it from ending
# early.
LONG = """
run: {stop: 1000s}
connections:
  c: {between: [h0, h1], rnr_retries: 7, min_rnr_timer: 1}
hosts:
  h0:
    do:
      - send: {qp: c, id: 1}
      - poll: {qp: c, status: SUCCESS}
"""
FLUSHED = """
connections:
  c: {between: [h0, h1], rnr_retries: 1, min_rnr_timer: 1}
hosts:
  h0:
    do:
      - send: {qp: c, id: 1, count: 100}
      - loop: {times: 100, do: [poll: {qp: c, status: SUCCESS}]}
"""


class Case(unittest.TestCase):
    """Has its own folder for named worlds."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        os.chmod(self.folder, 0o700)
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=self.folder, TMPDIR=self.folder)

    def tearDown(self):
        for name in self.sockets():
            self.simverbs("down", "--force", "--world", name[: -len(".sock")])
        shutil.rmtree(self.folder)

    def sockets(self):
        folder = os.path.join(self.folder, "simverbs")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def simverbs(self, *words):
        ended = subprocess.run(
            [SIMVERBS, *words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
        )
        return ended.returncode, ended.stdout

    def interrupted(self, number, begun, *words):
        """Ends with `number` once the output, or a file of the folder, has `begun`."""
        with subprocess.Popen(
            [SIMVERBS, *words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            said = process.stdout.readline() if begun else ""
            while begun and not re.search(begun, said):
                said += process.stdout.readline()
            if not begun:
                time.sleep(1)
            process.send_signal(number)
            return said + process.communicate(timeout=PATIENCE_S)[0], process.returncode


class Terminal:
    """A command on a terminal of 80 columns."""

    def __init__(self, environment, *words):
        self.process, self.descriptor = pty.fork()
        if self.process == 0:
            os.execve(SIMVERBS, [SIMVERBS, *words], environment)
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.kill(self.process, signal.SIGWINCH)
        self.text = ""

    def read_until(self, pattern):
        end = time.monotonic() + PATIENCE_S
        while not re.search(pattern, self.text):
            if not select.select([self.descriptor], [], [], end - time.monotonic())[0]:
                raise AssertionError(f"never on the terminal: {pattern}\n{self.text!r}")
            self.text += os.read(self.descriptor, 65536).decode()

    def end(self):
        """The exit status, as a shell has it."""
        while True:
            try:
                read = os.read(self.descriptor, 65536)
            except OSError:
                break
            if not read:
                break
            self.text += read.decode()
        os.close(self.descriptor)
        status = os.waitpid(self.process, 0)[1]
        return os.waitstatus_to_exitcode(status)


class Settings(Case):
    """The environment, as `simverbs settings` and programs see it."""

    def setUp(self):
        super().setUp()
        for name in [name for name in self.environment if name.startswith("SIMVERBS_")]:
            del self.environment[name]

    def devices(self):
        """What a program in its own world says, and how many devices it finds."""
        ended = subprocess.run(
            ["ibv_devices"],
            env=dict(self.environment, LD_LIBRARY_PATH=LIBRARIES),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_S,
        )
        return ended.stderr, len(re.findall("simverbs[0-9]", ended.stdout))

    def test_are_options_where_the_table_says_so(self):
        table = self.simverbs("settings", "--markdown")[1]
        options = set(re.findall(r"`(--[a-z-]+)`", table))
        self.assertGreater(len(options), 8)
        for command in ("run", "up"):
            said = set(re.findall("(--[a-z-]+)", self.simverbs(command, "--help")[1]))
            self.assertLessEqual(options, said, command)

    def test_show_what_the_environment_has(self):
        self.environment["SIMVERBS_SEED"] = "7"
        status, text = self.simverbs("settings")
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r"(?m)^SIMVERBS_SEED +7 +seed of")
        self.assertRegex(text, r"(?m)^SIMVERBS_TOPOLOGY +\(star:2\) ")

    def test_are_refused_by_name(self):
        self.environment.update(SIMVERBS_SEDE="7", SIMVERBS_SM="swep")
        status, text = self.simverbs("settings")
        self.assertEqual(status, 2)
        self.assertIn('SIMVERBS_SEDE is no setting: did you mean "SIMVERBS_SEED"?', text)
        self.assertIn("SIMVERBS_SM='swep' is none of startup, sweep, none", text)

    def test_a_misspelled_one_is_named_and_changes_nothing(self):
        self.environment["SIMVERBS_TOPOLGY"] = "star:4"
        said, count = self.devices()
        self.assertEqual(
            said,
            'simverbs: SIMVERBS_TOPOLGY is no setting: did you mean "SIMVERBS_TOPOLOGY"?\n',
        )
        self.assertEqual(count, 2)

    def test_a_wrong_one_leaves_no_device(self):
        self.environment["SIMVERBS_FIRST_QPN"] = "65536"
        said, count = self.devices()
        self.assertEqual(
            said, "simverbs: SIMVERBS_FIRST_QPN='65536' is not a number from 0 to 65535\n"
        )
        self.assertEqual(count, 0)

    def test_an_empty_one_is_not_set(self):
        for name in ("SEED", "ROUTING", "SERVER", "HOST", "TRACE", "SM", "WARN", "SCENARIO"):
            self.environment["SIMVERBS_" + name] = ""
        self.environment["SIMVERBS_TOPOLOGY"] = "star:4"
        self.assertEqual(self.devices(), ("", 4))

    def test_those_of_the_environment_do_not_reach_scenarios(self):
        scenario = self.write("flushed.yaml", FLUSHED)
        plain = self.simverbs("scenario", "run", scenario, "--json", os.path.join(self.folder, "plain"))
        made = os.path.join(self.folder, "made")
        self.environment.update(
            SIMVERBS_TOPOLOGY="nowhere",
            SIMVERBS_PERSONALITY="rxe",
            SIMVERBS_ROUTING="x",
            SIMVERBS_SEED="9",
            SIMVERBS_FIRST_PSN="9",
            SIMVERBS_FIRST_QPN="9",
            SIMVERBS_KEYS="random",
            SIMVERBS_SM="none",
            SIMVERBS_SCHEDULE="free",
            SIMVERBS_SPIN_MS="x",
            SIMVERBS_MEMLOCK="0",
            SIMVERBS_HOST="nobody",
            SIMVERBS_SERVER="/nowhere",
            SIMVERBS_SCENARIO="/nowhere",
            SIMVERBS_TRACE=made,
            SIMVERBS_TRACE_FLUSH="1",
            SIMVERBS_PCAP=made,
            SIMVERBS_DIGEST=made,
            SIMVERBS_SUMMARY="1",
        )
        other = self.simverbs("scenario", "run", scenario, "--json", os.path.join(self.folder, "other"))
        self.assertEqual(plain, other)
        self.assertFalse(os.path.exists(made))
        verdicts = []
        for name in ("plain", "other"):
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                verdicts.append(json.load(file)[0])
        self.assertEqual(verdicts[0]["digest"], verdicts[1]["digest"])


class Help(Case):
    def help_of_all(self, words=()):
        """The words and --help of a command and of all below it."""
        status, text = self.simverbs(*words, "--help")
        self.assertEqual(status, 0, words)
        yield words, text
        listed = text.partition("Subcommands:\n")[2].partition("\n\n")[0]
        for name in re.findall(r"^  ([a-z_]+) ", listed, re.M):
            yield from self.help_of_all((*words, name))

    def test_has_the_table_of_exit_statuses(self):
        count = 0
        for words, text in self.help_of_all():
            count += 1
            for line in ["  0    ", "  1    ", "  2    ", "  130  interrupted"]:
                self.assertIn(line, text, words)
        self.assertGreater(count, 40)

    def test_exit_statuses_of_check(self):
        for status, words in ((2, ["check", "nosuch.yaml"]), (127, ["check", "--", "./nosuch"])):
            self.assertEqual(self.simverbs(*words)[0], status, words)
        wrong = self.write("wrong.yaml", "run: {sede: 1}\n")
        self.assertEqual(self.simverbs("check", wrong)[0], 2)
        self.assertEqual(self.simverbs("check", "--", "false")[0], 1)

    def test_a_scenario_leaves_a_capture(self):
        capture = os.path.join(self.folder, "run.pcapng")
        status, text = self.simverbs("scenario", "--pcap", capture, SCENARIOS + "/status_success.yaml")
        self.assertEqual(status, 0, text)
        packets = subprocess.run(["tshark", "-r", capture, "-T", "fields", "-e", "infiniband.bth.opcode"],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        first, last, acknowledge = "0", "2", "17"  # of RC
        self.assertEqual(packets.stdout.split(), [first, last, first, last, acknowledge, acknowledge])

        os.remove(capture)
        processes = self.write("processes.yaml", "hosts: {h0: {run: ibv_devices}}\n")
        self.assertEqual(self.simverbs("scenario", "--pcap", capture, processes)[0], 0)
        with open(capture, "rb") as file:
            self.assertEqual(file.read(4), b"\x0a\x0d\x0d\x0a")

    def test_files_that_a_scenario_cannot_leave(self):
        file = os.path.join(self.folder, "file")
        scenario = SCENARIOS + "/status_success.yaml"
        for words, told in (
            (["--pcap", "/nowhere/run.pcapng", scenario], "'/nowhere/run.pcapng' cannot be written"),
            (["--pcap", file, scenario, scenario], "--pcap is for one scenario; there are 2"),
            (["--trace", file, scenario, scenario], "--trace is for one scenario; there are 2"),
            (["--pcap", file, "--trace", file, scenario], "--trace and --pcap name one file"),
        ):
            status, text = self.simverbs("scenario", *words)
            self.assertEqual(status, 2, text)
            self.assertIn(told, text)
        status, text = self.simverbs("scenario", "--pcap", "/dev/full", scenario)
        self.assertEqual(status, 1, text)
        self.assertIn("/dev/full: simverbs_capture_close: the capture is not complete", text)

    def test_a_dash_is_standard_output(self):
        trace = os.path.join(self.folder, "trace.jsonl")
        self.simverbs("scenario", "--trace", trace, SCENARIOS + "/status_success.yaml")
        failing = self.write("flushed.yaml", FLUSHED)
        there = os.listdir()
        for words in (
            ["viz", "qp"],
            ["viz", "ladder", trace],
            ["viz", "report", trace],
            ["shrink", "--runs", "3", failing],
        ):
            status, text = self.simverbs(*words)
            self.assertEqual(status, 0, text)
            self.assertEqual(self.simverbs(*words, "-o", "-"), (0, text), words)
        self.assertEqual(os.listdir(), there)

    def test_has_one_word_for_a_kind_of_value(self):
        for words, text in self.help_of_all():
            self.assertNotRegex(text, r"\b(TEXT|UINT|INT|REQUIRED)\b", words)
            for line in text.splitlines():
                self.assertLessEqual(len(line), 80, f"{words}: {line}")

    def test_wrong_command_lines_are_told_with_the_nearest_word(self):
        for words, told in [
            ("", "a command is required; there are: run, exec, up, on, "),
            ("staus", 'no command \'staus\': did you mean "status"?'),
            ("lab chek 2", 'lab: no command \'chek\': did you mean "check"?'),
            ("lab", "lab: a command is required; there are: list, start, check"),
            ("up --topology pair",
             "up: no option '--topology': the topology is given without it"),
            ("fabric --world x link h0-s0", "fabric link: '--world' stands behind 'link'"),
            ("up pair --wrld x", 'up: no option \'--wrld\': did you mean "--world"?'),
            ("fabric --world x", "fabric: a command is required before '--world'; there are: show"),
            ("fabric frob --world x", "fabric: no command 'frob'; there are: show, link"),
            ("up pair extra", "up: 'extra' is one word too many"),
            ("up pair --seed -1", "up: --seed: -1 is below 0"),
            ("sweep", "sweep: file is required"),
            ("viz qp --service RX", "viz qp: --service: RX not in {RC,UC,"),
        ]:
            status, text = self.simverbs(*words.split())
            self.assertEqual(status, 2, words)
            self.assertIn("simverbs: " + told, text)
            self.assertIn("--help says more)", text)

    def test_tells_required_and_defaults(self):
        text = " ".join(self.simverbs("sweep", "--help")[1].split())
        self.assertRegex(text, r"file SCENARIO the scenario \(required\)")
        self.assertRegex(text, r"--seed-limit DURATION .* 10min, 1h \(default: 1min\)")
        self.assertRegex(text, r"--keep DIR .* \(default: \.\)")


class Worlds(Case):
    def up(self, name):
        status, text = self.simverbs("up", "pair", "--world", name)
        self.assertEqual(status, 0, text)
        return text

    def test_advice_names_the_world(self):
        self.assertIn("simverbs on --world b HOST", self.up("b"))
        self.assertEqual(
            self.simverbs("up", "pair", "--world", "b"),
            (
                2,
                f"simverbs: a world is already served at '{self.folder}/simverbs/b.sock'; "
                "to end it: simverbs down --world b\n",
            ),
        )
        status, text = self.simverbs("on", "--world", "c", "h0", "--", "true")
        self.assertEqual(status, 2)
        self.assertIn(", but as --world b; to serve one: simverbs up TOPOLOGY --world c", text)

    def test_status_lists_them(self):
        status, text = self.simverbs("status")
        self.assertEqual(status, 2)
        self.assertIn("no world is served", text)
        self.up("a")
        self.assertRegex(self.simverbs("status")[1], r"^world a\ntopology pair.*\nhost h0: lid 1")
        self.up("b")
        status, text = self.simverbs("status")
        self.assertEqual(status, 0)
        self.assertRegex(text, r"\na +topology pair.*\nb +topology pair")
        self.assertIn("host h1", self.simverbs("status", "--world", "b")[1])

    def test_what_a_killed_server_left_is_removed(self):
        self.up("a")
        self.up("b")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(f"{self.folder}/simverbs/b.sock")
            peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        os.kill(struct.unpack("iII", peer)[0], signal.SIGKILL)
        while self.simverbs("status", "--world", "b")[0] == 0:
            time.sleep(0.01)
        self.simverbs("status")
        self.assertEqual([n for n in self.sockets() if n.startswith("b")], [])
        self.assertEqual(self.simverbs("status", "--world", "a")[0], 0)

    def test_what_a_killed_run_left_is_removed(self):
        begun = os.path.join(self.folder, "begun")
        with subprocess.Popen(
            [SIMVERBS, "run", "pair", f"h0=touch {begun}; exec sleep 100"], env=self.environment
        ) as run:
            while not os.path.exists(begun):
                time.sleep(0.01)
            run.send_signal(signal.SIGSTOP)  # it must not see what happens, nor the guard its end
            with open(f"/proc/{run.pid}/task/{run.pid}/children", encoding="utf-8") as children:
                for child in children.read().split():
                    os.kill(int(child), signal.SIGKILL)
            run.kill()
        self.assertEqual(len([n for n in os.listdir(self.folder) if "-run-" in n]), 1)
        # A killed process holds its locks until the kernel has ended it.
        end = time.monotonic() + PATIENCE_S
        left = ["any"]
        while left and time.monotonic() < end:
            self.simverbs("run", "pair", "h0=true")
            left = [n for n in os.listdir(self.folder) if "-run-" in n]
        self.assertEqual(left, [])


class Interrupted(Case):
    def test_sweep_prints_what_there_is(self):
        long = self.write("long.yaml", LONG)
        text, status = self.interrupted(signal.SIGINT, "", "sweep", "-n", "1000", long)
        self.assertEqual(status, 130, text)
        self.assertRegex(text, r"0 of 0 seeds passed")
        self.assertRegex(text, r"1000 seeds were left out: interrupted")

    def test_scenarios_print_what_there_is(self):
        self.write("a.yaml", "{}\n")
        self.write("b.yaml", LONG)
        text, status = self.interrupted(signal.SIGTERM, "PASS.*a.yaml", "scenario", self.folder)
        self.assertEqual(status, 143, text)
        self.assertIn("1 of 2 passed, interrupted: 1 did not end", text)

    def test_check_tells_what_was_not_checked(self):
        long = self.write("long.yaml", LONG)
        text, status = self.interrupted(signal.SIGINT, "", "check", long)
        self.assertEqual(status, 130, text)
        self.assertIn(f"INTERRUPTED {long}", text)

    def test_run_of_a_scenario_prints_what_there_is(self):
        slow = self.write("slow.yaml", 'hosts: {h0: {run: "echo begun; exec sleep 100"}}\n')
        text, status = self.interrupted(signal.SIGINT, "begun", "run", "--scenario", slow)
        self.assertEqual(status, 130, text)
        self.assertIn(f"INTERRUPTED {slow}", text)
        self.assertIn("what the scenario expects was not judged", text)
        self.assertNotIn("PASS", text)

    def test_shrink_prints_how_small_it_has_become(self):
        flushed = self.write("flushed.yaml", FLUSHED)
        text, status = self.interrupted(signal.SIGINT, "^faults", "shrink", flushed)
        if status == 0:  # it was faster
            return
        self.assertEqual(status, 130, text)
        self.assertRegex(text, r"runs? \(interrupted\): from")
        self.assertIn("connections:", text)


class Shown(Case):
    def test_a_cascade_is_one_line(self):
        status, text = self.simverbs("scenario", self.write("flushed.yaml", FLUSHED))
        self.assertEqual(status, 1)
        self.assertEqual(text.count("WR_FLUSH_ERR"), 2, text)
        self.assertIn("and 98 more of the same kind (operation status WR_FLUSH_ERR)", text)

    def test_progress_on_a_terminal(self):
        terminal = Terminal(self.environment, "sweep", "-n", "1000000", SCENARIOS + "/status_success.yaml")
        terminal.read_until(r"\r\x1b\[K\d+ of 1000000 seeds, about \d+ \w+ left")
        os.write(terminal.descriptor, b"\x03")
        self.assertEqual(terminal.end(), 130)
        self.assertIn("seeds were left out: interrupted", terminal.text)

    def test_how_far_a_long_scenario_is(self):
        terminal = Terminal(self.environment, "scenario", self.write("long.yaml", LONG))
        terminal.read_until(r"0 of 1 scenario, at [\d.]+\w+ of virtual time")
        os.write(terminal.descriptor, b"\x03")
        self.assertEqual(terminal.end(), 130)

    def test_nothing_of_it_without_a_terminal(self):
        self.assertNotIn("left", self.simverbs("sweep", "-n", "300", SCENARIOS + "/status_success.yaml")[1])


class Watched(Case):
    def test_fits_a_terminal_and_ends_with_q(self):
        self.simverbs("up", "star:2", "--world", "w")
        with socket.create_server(("", 0)) as free:
            port = str(free.getsockname()[1])
        with subprocess.Popen(
            [SIMVERBS, "on", "--world", "w", "h0", "--", "ibv_rc_pingpong", "-p", port],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as server:
            terminal = Terminal(self.environment, "watch", "--world", "w", "--interval", "50ms")
            terminal.read_until(r"h0\.?\w* 0x\w+.*(.|\n)*more in .* of wall time")
            terminal.text = ""
            terminal.read_until(r"\x1b\[H(.|\n)*\x1b\[J")
            screen = re.search(r"\x1b\[H((.|\n)*?)\x1b\[J", terminal.text).group(1)
            self.assertIn("q: quit", screen.splitlines()[0])
            lines = [re.sub(r"\x1b\[K|\r", "", line) for line in screen.splitlines()]
            for heading in ["queue pair ", "port "]:
                row = next(line for line in lines if line.startswith(heading))
                self.assertLessEqual(len(row), 80)
                self.assertRegex(row, r"(waits|not ready)$")
            os.write(terminal.descriptor, b"q")
            self.assertEqual(terminal.end(), 0)
            server.terminate()

    def test_ends_as_the_table_of_statuses_says(self):
        self.simverbs("up", "pair", "--world", "w")
        for number, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            said, status = self.interrupted(number, "queue pair|port", "watch", "--world", "w")
            self.assertEqual(status, expected, said)


if __name__ == "__main__":
    unittest.main()
