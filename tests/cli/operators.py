"""Tests unusual input of operators, full disks, and servers that fail.

    SIMVERBS=build/dev/bin/simverbs ... python3 operators.py Programs     (as commands.py)
"""

import glob
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import commands
from commands import LIBRARIES, PATIENCE_S, SCENARIOS, SIMVERBS


class World(commands.Case):
    """Has a world, `w`."""

    topology = "star:2"

    def setUp(self):
        super().setUp()
        for name in [name for name in self.environment if name.startswith("SIMVERBS_")]:
            del self.environment[name]

    def up(self, *options, name="w"):
        status, text = self.simverbs("up", self.topology, "--world", name, *options)
        self.assertEqual(status, 0, text)

    def on(self, *words):
        return self.simverbs("on", "--world", "w", *words)

    def server_of(self, name="w"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(f"{self.folder}/simverbs/{name}.sock")
            peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return struct.unpack("iII", peer)[0]

    def to_full_disk(self, *words):
        """The status, and what the command says on stderr while its output is /dev/full."""
        with open("/dev/full", "w", encoding="utf-8") as full:
            ended = subprocess.run(
                [SIMVERBS, *words],
                env=self.environment,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=PATIENCE_S,
            )
        return ended.returncode, ended.stderr


class Programs(World):
    def test_on_leaves_the_program_its_options(self):
        self.up()
        for words in (["h0"], ["h0", "--"]):
            self.assertEqual(self.on(*words, "ls", "-d", "/tmp")[1], "/tmp\n")
            self.assertEqual(self.on(*words, "echo", "-n", "--world", "x", "--help", "--"),
                             (0, "--world x --help --"))
        self.assertRegex(self.on("h0", "ibv_devinfo", "-l")[1], r"^1 HCA found:\n\s+simverbs0")

    def test_on_takes_its_own_options_before_the_program(self):
        self.up()
        self.assertEqual(self.simverbs("on", "h0", "--world", "w", "echo", "a"), (0, "a\n"))
        self.assertEqual(self.simverbs("on", "--world=w", "h0", "echo", "a"), (0, "a\n"))
        self.assertIn("Run a program on a host", self.simverbs("on", "--help")[1])

    def test_on_names_what_is_missing(self):
        self.up()
        for words in (["h0"], ["h0", "--"]):
            self.assertEqual(
                self.on(*words),
                (2, "simverbs: on: a program is missing: simverbs on --world w h0 PROGRAM "
                    "[ARGUMENT...]\n"))
        status, text = self.on("H1", "true")
        self.assertEqual(status, 2)
        self.assertIn("has no host 'H1': did you mean \"h1\"?; it has h0, h1", text)

    def test_run_tells_which_program_failed_and_how(self):
        status, text = self.simverbs("run", "star:2", "h0=exit 3", "h1=kill -SEGV $$")
        self.assertEqual(status, 3)
        self.assertIn("simverbs: h0 ended with status 3: exit 3\n", text)
        self.assertRegex(text, r"simverbs: h1 was killed by signal 11 \(Segmentation fault\): kill")
        self.assertRegex(text, r"run digest [0-9a-f]{16} of \d+ records")

    def test_run_tells_who_was_still_running_at_the_limit(self):
        status, text = self.simverbs("run", "--time-limit", "1.5s", "star:2", "h0=true", "h1=sleep 9")
        self.assertEqual(status, 124)
        self.assertIn("the time limit of 1500 ms has passed; still running: h1 (sleep 9)\n", text)

    def test_run_tells_that_a_scenario_has_its_fabric(self):
        scenario = self.write("empty.yaml", "{}\n")
        status, text = self.simverbs("run", "star:2", "--scenario", scenario, "h0=true")
        self.assertEqual(status, 2)
        self.assertIn("'star:2' is not HOST=COMMAND; a scenario names its fabric itself", text)

    def test_run_names_the_folder_that_it_cannot_write(self):
        self.environment["TMPDIR"] = "/proc"
        status, text = self.simverbs("run", "star:2", "h0=true")
        self.assertEqual(status, 1)
        self.assertIn("no folder for the run can be made in '/proc': No such file", text)

    def test_check_names_the_folder_that_it_cannot_write(self):
        self.environment["TMPDIR"] = "/proc"
        status, text = self.simverbs("check", self.write("empty.yaml", "{}\n"))
        self.assertEqual(status, 1)
        self.assertIn("no temporary folder can be made in '/proc' (TMPDIR names another): No such",
                      text)

    def test_the_connection_manager_is_a_device(self):
        self.up()
        self.assertEqual(self.on("h0", "cat", "/sys/class/misc/rdma_cm/abi_version"), (0, "4\n"))
        self.assertEqual(self.on("h0", "cat", "/proc/sys/net/rdma_ucm/max_backlog"), (0, "1024\n"))
        looks = ("import os, stat; f = os.open('/dev/infiniband/rdma_cm', os.O_RDWR); "
                 "print(stat.S_ISCHR(os.fstat(f).st_mode), stat.S_ISCHR(os.fstat(os.dup(f)).st_mode))")
        self.assertEqual(self.on("h0", "python3", "-c", looks), (0, "True True\n"))


class FullDisk(World):
    def test_commands_tell_that_their_output_is_lost(self):
        self.up()
        for words in (["settings"], ["status", "--world", "w"], ["fabric", "show", "--world", "w"],
                      ["viz", "qp"], ["topology", "show", "pair"], ["--help"], ["--version"],
                      ["run", "pair", "h0=echo a"]):
            status, said = self.to_full_disk(*words)
            self.assertEqual(status, 1, words)
            self.assertRegex(said, r"(?m)^simverbs: .*(No space left|cannot be written)", words)

    def test_scenario_tells_that_its_trace_is_cut(self):
        file = f"{self.folder}/sends.yaml"
        with open(file, "w", encoding="utf-8") as text:
            text.write("connections: {c: {between: [h0, h1]}}\n"
                       "hosts: {h0: {do: [{write: {qp: c, id: 1}}, {poll: {qp: c}}]}}\n")
        status, text = self.simverbs("scenario", file, "--trace", "/dev/full")
        self.assertEqual(status, 1, text)
        self.assertIn("/dev/full: simverbs_trace_close: the trace is not complete: No space left",
                      text)

    def test_run_tells_that_its_files_are_cut(self):
        for option, what in (("--trace", "trace"), ("--pcap", "capture")):
            status, text = self.simverbs("run", option, "/dev/full", "pair", "h0=ibv_devices")
            self.assertEqual(status, 1, text)
            self.assertEqual(
                text.count(f"{what} file '/dev/full' is not complete: No space left on device"), 1)
            self.assertIn("h0 |     simverbs0", text)

    def test_down_tells_that_the_files_of_up_are_cut(self):
        self.up("--trace", "/dev/full")
        self.assertEqual(self.on("h0", "ibv_devices")[0], 0)
        status, text = self.simverbs("down", "--world", "w")
        self.assertEqual(status, 1)
        self.assertIn("trace file '/dev/full' is not complete: No space left on device\n", text)
        self.assertIn("run digest", text)

    def test_programs_tell_that_their_files_are_cut(self):
        for variable, what in (("TRACE", "trace"), ("PCAP", "capture")):
            self.environment["SIMVERBS_" + variable] = "/dev/full"
            ended = subprocess.run(["ibv_devinfo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=dict(self.environment, LD_LIBRARY_PATH=LIBRARIES), text=True)
            del self.environment["SIMVERBS_" + variable]
            self.assertEqual(ended.returncode, 0)
            self.assertEqual(
                ended.stderr,
                f"simverbs: {what} file '/dev/full' is not complete: No space left on device\n")


class Foreground(World):
    def test_a_routing_engine_that_does_not_suit_is_named(self):
        other = "simverbs: routing fat-tree does not suit this fabric, "
        for manager in ("startup", "sweep"):
            words = ["run", "--sm", manager, "--routing"]
            text = self.simverbs(*words, "fat-tree", "ring:4", "h0=true")[1]
            self.assertRegex(text, re.escape(other) + r"[a-z-]+ is used instead \(fat-tree: ")
            text = self.simverbs(*words, "up-down", "ring:4", "h0=true")[1]
            self.assertNotIn("does not suit", text)

    def test_up_ends_with_the_number_of_the_signal_that_ended_it(self):
        for number, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (None, 0)):
            server = subprocess.Popen([SIMVERBS, "up", "pair", "--foreground", "--world", "w"],
                                      env=self.environment, stderr=subprocess.PIPE, text=True)
            while self.simverbs("status", "--world", "w")[0] != 0:
                self.assertIsNone(server.poll())
            if number is None:
                self.assertEqual(self.simverbs("down", "--world", "w")[0], 0)
            else:
                server.send_signal(number)
            self.assertIn("run digest", server.communicate(timeout=PATIENCE_S)[1])
            self.assertEqual(server.returncode, expected)


class Stopped(World):
    """A server that does not answer."""

    def setUp(self):
        super().setUp()
        self.up()
        self.server = self.server_of()
        os.kill(self.server, signal.SIGSTOP)

    def tearDown(self):
        os.kill(self.server, signal.SIGCONT)
        super().tearDown()

    def all_at_once(self, commands):
        """Each waits for 5 s."""
        with ThreadPoolExecutor() as pool:
            return list(pool.map(lambda words: self.simverbs(*words), commands))

    def test_is_named_by_commands(self):
        commands = [["status", "--world", "w"], ["down", "--world", "w"],
                    ["on", "h0", "--world", "w", "true"], ["fabric", "show", "--world", "w"],
                    ["watch", "--world", "w"]]
        for words, (status, text) in zip(commands, self.all_at_once(commands)):
            self.assertEqual(status, 2, words)
            self.assertRegex(text, r"the world at '.*w.sock' does not answer within 5 s \(process "
                             rf"{self.server}, stopped: kill -CONT {self.server}\)", words)

    def test_what_failed_is_not_carried_out_later(self):
        commands = [["fabric", "link", "--world", "w", "h0-s0", "down"], ["down", "--world", "w"]]
        for words, (status, _) in zip(commands, self.all_at_once(commands)):
            self.assertEqual(status, 2, words)
        os.kill(self.server, signal.SIGCONT)
        self.assertRegex(self.simverbs("fabric", "show", "--world", "w", "h0-s0")[1],
                         r"(?m)^h0-s0 +InfiniBand +UP ")

    def test_others_are_listed(self):
        self.up(name="v")
        status, text = self.simverbs("status")
        self.assertEqual(status, 1)
        self.assertRegex(text, r"(?m)^v +topology star:2")
        self.assertRegex(text, r"(?m)^w +the world at .* does not answer within 5 s")

    def test_programs_say_so_and_wait(self):
        path = f"{self.folder}/simverbs/w.sock"
        environment = dict(self.environment, LD_LIBRARY_PATH=LIBRARIES, SIMVERBS_SERVER=path,
                           SIMVERBS_HOST="h0")
        with subprocess.Popen(["ibv_devices"], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as program:
            self.assertIn("does not answer within 5 s", program.stderr.readline())
            os.kill(self.server, signal.SIGCONT)
            self.assertIn("simverbs0", program.communicate(timeout=PATIENCE_S)[0])


class Names(World):
    """A host with several HCAs."""

    topology = os.path.join(os.path.dirname(SCENARIOS), "topologies", "two_rails.yaml")

    def fabric(self, *words):
        return self.simverbs("fabric", words[0], "--world", "w", *words[1:])

    def test_a_host_is_all_of_its_hcas(self):
        self.up()
        self.assertRegex(self.fabric("show", "h0")[1], r"(?m)^h0\.0:1 (.|\n)*^h0\.1:1 ")
        self.assertRegex(self.fabric("counters", "h0", "--zeros")[1],
                         r"(?m)^h0\.0:1 (.|\n)*^h0\.1:1 ")
        self.assertRegex(self.fabric("show", "h0.1")[1], r"(?m)^h0\.1:1 ")
        for name in ("h0:1", "h0:2"):
            self.assertEqual(self.fabric("port", name, "disable"),
                             (2, "simverbs: host h0 has h0.0 and h0.1: name the port of one of "
                                 "them\n"))
        self.assertRegex(self.simverbs("status", "--world", "w")[1],
                         r"(?m)^host h0, HCA h0\.0: lid \d+.*\nhost h0, HCA h0\.1: lid ")

    def test_zeros_are_counted_or_shown(self):
        self.up()
        text = self.fabric("counters", "h0.0")[1]
        self.assertRegex(text, r"\nleft out: \d+ counters of value 0 \(--zeros shows them\)\n$")
        every = self.fabric("counters", "h0.0", "--zeros")[1]
        self.assertNotIn("left out", every)
        self.assertEqual(every, self.fabric("counters", "h0.0:1")[1])


class ForPrograms(World):
    """--json"""

    def json_of(self, *words):
        status, text = self.simverbs(*words, "--json")
        self.assertEqual(status, 0, text)
        return json.loads(text)

    def test_of_status_watch_and_the_subnet_manager(self):
        self.up()
        with subprocess.Popen([SIMVERBS, "on", "--world", "w", "h1", "ibv_asyncwatch"],
                              env=self.environment, stdout=subprocess.PIPE) as program:
            program.stdout.readline()
            status = self.json_of("status", "--world", "w")
            program.terminate()
        self.assertEqual([status["topology"], status["seed"]], ["star:2", 1])
        self.assertEqual([len(host["processes"]) for host in status["hosts"]], [0, 1])
        self.assertEqual([host["programs"] for host in status["hosts"]], [[], ["ibv_asyncwatch"]])
        self.assertEqual(status["hosts"][1]["hcas"],
                         [{"name": "h1", "lid": 2, "state": "ACTIVE", "queue_pairs": 0}])
        watched = self.json_of("watch", "--world", "w", "--once")
        self.assertEqual([port["port"] for port in watched["ports"]],
                         ["h0:1", "h1:1", "s0:1", "s0:2"])
        manager = self.json_of("fabric", "sm", "--world", "w")
        self.assertEqual([manager["manager"]["kind"], manager["manager"]["state"],
                          manager["infiniband_ports"]["ACTIVE"], manager["routes"]["unreachable"]],
                         ["sweep", "MASTER", 4, 0])

    def test_of_several_worlds_is_a_line_each(self):
        self.up()
        self.up(name="v")
        status, text = self.simverbs("status", "--json")
        self.assertEqual(status, 0, text)
        worlds = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([world["world"] for world in worlds], ["v", "w"])
        self.assertEqual({world["topology"] for world in worlds}, {"star:2"})

    def test_goes_with_one_look(self):
        self.up()
        for words in (["watch", "--world", "w"], ["fabric", "sm", "sweep", "--world", "w"]):
            self.assertEqual(self.simverbs(*words, "--json")[0], 2, words)

    def test_of_topologies(self):
        sizes = self.json_of("topology", "check", "fat-tree:4", "--routes")
        self.assertEqual([sizes["host_adapters"], sizes["switches"], sizes["links"],
                          sizes["diameter"], sizes["unreachable_most"]], [16, 20, 48, 6, 0])
        self.assertEqual([(each["engine"], each["unreachable"], each["credit_loop"])
                          for each in sizes["routes"]],
                         [("min-hop", 0, None), ("up-down", 0, None), ("fat-tree", 0, None)])
        no_tree = self.json_of("topology", "check", "torus:3x3", "--routes")["routes"][2]
        self.assertTrue(no_tree["error"])
        shown = self.json_of("topology", "show", "pair")
        self.assertEqual([node["name"] for node in shown["nodes"]], ["h0", "h1"])
        self.assertEqual(shown["links"][0]["b"], {"node": "h1", "port": 1})
        self.assertEqual([shown["links"][0][key] for key in ("latency_ps", "mtu", "pfc", "vlans")],
                         [500000, 4096, None, None])
        ethernet = self.json_of("topology", "show", "eth-pair")["links"][0]
        self.assertEqual([ethernet["layer"], ethernet["vls"]], ["Ethernet", None])
        self.assertEqual(self.simverbs("topology", "show", "pair", "--json", "--dot")[0], 2)


class Places(World):
    def test_names_that_cannot_be_shown_are_refused(self):
        for name in ("", "-x", "--seed", ".x", "a\nb", "/tmp/", "/tmp/.x"):
            status, text = self.simverbs("up", "pair", "--world", name)
            self.assertEqual(status, 2, name)
            self.assertIn("begins with no '-' and no '.'", text)
        self.assertEqual(self.sockets(), [])

    def test_a_folder_that_cannot_be_made_is_told_with_its_reason(self):
        status, text = self.simverbs("up", "pair", "--world", "/proc/worlds/w.sock")
        self.assertEqual(status, 2)
        self.assertNotIn("already", text)
        self.assertRegex(text, "cannot listen at '/proc/worlds/w.sock': ")

    def test_a_runtime_folder_that_is_none_is_told(self):
        for folder in ("/nonexistent", "relative"):
            self.environment["XDG_RUNTIME_DIR"] = folder
            name = f"w{os.getpid()}"
            status, text = self.simverbs("up", "pair", "--world", name)
            self.assertEqual(self.simverbs("down", "--world", name)[0], 0)
            self.assertEqual(status, 0)
            self.assertIn(f"XDG_RUNTIME_DIR='{folder}' is no folder of this user; worlds are in "
                          f"/tmp/simverbs-{os.getuid()}/\n", text)

    def test_a_name_is_a_word_of_a_shell(self):
        self.assertIn("simverbs on --world 'a b' HOST", self.simverbs("up", "pair", "--world", "a b")[1])

    def test_files_of_a_run_are_two_and_are_read(self):
        file = os.path.join(self.folder, "x")
        self.assertEqual(self.simverbs("up", "pair", "--trace", file, "--pcap", file),
                         (2, f"simverbs: --trace and --pcap name one file, '{file}'\n"))
        self.assertFalse(os.path.exists(file))
        os.mkfifo(file)
        for option in ("--trace", "--pcap"):
            self.assertEqual(self.simverbs("up", "pair", option, file),
                             (2, f"simverbs: '{file}' is a FIFO that nobody reads: start its "
                                 "reader first\n"))
        self.assertEqual(self.sockets(), [])
        self.assertEqual(self.simverbs("run", "--trace", "/dev/null", "--pcap", "/dev/null", "pair",
                                       "h0=true")[0], 0)

    def test_a_mistake_in_a_topology_is_a_failed_test(self):
        status, text = self.simverbs("topology", "check", self.write("t.yaml", "hosts: [h0]\n"))
        self.assertEqual(status, 1, text)

    def test_a_killed_server_is_told(self):
        for words in (["status"], ["status", "--world", "w"], ["on", "--world", "w", "h0", "true"],
                      ["down", "--world", "w"], ["fabric", "show", "--world", "w"]):
            self.up()
            self.assertEqual(self.on("h0", "true")[0], 0)
            server = self.server_of()
            os.kill(server, signal.SIGKILL)
            end = time.monotonic() + PATIENCE_S
            while os.path.exists(f"/proc/{server}/exe") and time.monotonic() < end:
                time.sleep(0.01)
            status, text = self.simverbs(*words)
            self.assertEqual(status, 2, words)
            self.assertRegex(text, "w.sock' was killed or has crashed; its files are removed\n")
            self.assertEqual(glob.glob(f"{self.folder}/simverbs/*"), [], words)


class Words(World):
    def test_of_usage(self):
        for words, told in [
            ("up pair --seed 1 --seed 2", "--seed: takes one value and got 2; give it once"),
            ("up pair --seed banana", "--seed: 'banana' is not a number from 0 to 2^64-1"),
            ("shrink a.yaml --seed banana", "--seed: 'banana' is no whole number from 0 on"),
            ("shrink a.yaml --seed 99999999999999999999", "99999999999999999999 is above 2^64-1"),
            ("explain a.jsonl --qp 99999999999", "--qp: 99999999999 is too large"),
            ("sweep a.yaml --first banana", "--first: Value banana not in range 0 to 4611686018427"),
            ("explain a.jsonl --wr banana", "--wr: 'banana' is no whole number from 0 on"),
            ("sweep a.yaml --jobs banana", "banana not in range 1 to 1024"),
            ("up pair --world", "--world: its value is missing"),
            ("up torus:1x1", '"torus:1x1" is not valid; torus:AxB or torus:AxBxC: each dimension'),
            ("watch --interval 1.5", '--interval: "1.5": a duration needs a unit'),
            ("watch --count 99999999999999999999", "--count"),
            ("topology check nosuch.yaml", "nosuch.yaml: No such file or directory"),
            ("watch --interval 0.1us", '--interval: "0.1us" is not a whole number of ms'),
            ("viz timeline t -o x.svg", "--output: x.svg: the ending is not .json"),
            ("viz ladder t -o x.png", "--output: x.png: the ending is not .svg"),
            ("viz report t -o p.docx", "--output: p.docx: the ending is not .html"),
            ("viz qp -o p.jpg", "--output: p.jpg: the ending is not .dot, .gv, .svg, .png, .pdf"),
        ]:
            status, text = self.simverbs(*words.split())
            self.assertEqual(status, 2, words)
            self.assertIn(told, text)

    def test_a_setting_of_a_scenario_is_named(self):
        scenario = self.write("empty.yaml", "{}\n")
        status, text = self.simverbs("scenario", scenario, "--set", "run.seed=1", "--set", "runn.x=1")
        self.assertEqual(status, 2)
        self.assertIn("--set runn.x=1: ", text)
        self.assertNotIn("yaml:1:1", text)

    def test_a_mistake_in_a_fault_is_wrong_input(self):
        scenario = self.write("fault.yaml", "fabric: star:2\nhosts: {h0: {run: 'true'}}\n"
                              "faults: [{action: process_kill, node: h0, when: {qp: h0/1}}]\n")
        status, text = self.simverbs("scenario", scenario)
        self.assertEqual(status, 2, text)
        self.assertIn("process_kill does not read when: qp; it waits for a time unless", text)

    def test_of_ethernet_rates(self):
        self.topology = "eth-star:2"
        self.up()
        self.assertIn("link h1-s0 runs at 10 Gb/s\n",
                      self.simverbs("fabric", "link", "--world", "w", "h1-s0", "rate", "10Gb/s")[1])
        self.assertEqual(self.on("h1", "cat", "/sys/class/infiniband/simverbs0/ports/1/rate")[1],
                         "10 Gb/sec (1X QDR)\n")
        self.assertRegex(self.on("h1", "ibv_devinfo", "-v")[1], r"active_speed:\s+10.0 Gbps \(4\)")
        shown = self.simverbs("fabric", "show", "--world", "w")[1]
        self.assertNotIn("EDR", shown)
        self.assertRegex(shown, r"(?m)^h0-s0 +Ethernet +\w+ +100 Gb/s ")

    def test_ports_have_their_keys_and_addresses(self):
        self.up()
        self.assertRegex(self.simverbs("fabric", "port", "--world", "w", "h0:1")[1],
                         r"(?m)^h0:1 +0xffff +0 +fe80:.* +InfiniBand")

    def test_attributes_can_be_copied(self):
        self.up()
        counters = "/sys/class/infiniband/simverbs0/ports/1"
        status, text = self.on("h0", "sh", "-c", f"""
            cd {self.folder} && cp {counters}/state st && cp -r {counters}/counters . &&
            cmp st {counters}/state && cmp counters/port_xmit_data {counters}/counters/port_xmit_data &&
            tar -cf t.tar -C {counters} state 2>/dev/null; tar -tvf t.tar && stat -c %s {counters}/state""")
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r"^\S+ \S+ +4096 \S+ \S+ state\n4096\n$")

    def test_of_a_world_without_a_subnet_manager(self):
        self.up("--sm", "none")
        self.assertIn("routes: none, no port of the switches has a LID\n",
                      self.simverbs("fabric", "sm", "--world", "w")[1])

    def test_a_rate_may_be_two_words(self):
        self.up()
        self.assertEqual(self.simverbs("fabric", "link", "--world", "w", "h0-s0", "rate", "4x", "HDR"),
                         (0, "link h0-s0 runs at 4x HDR\n"))

    def test_a_switch_has_gids_at_port_0_alone(self):
        self.up()
        shown = self.simverbs("fabric", "show", "--world", "w", "s0")[1]
        self.assertRegex(shown, r"(?m)^s0:0 +0xffff +0 +fe80:")
        self.assertNotRegex(shown, r"(?m)^s0:1 .*fe80:")

    def test_of_capabilities_of_ports(self):
        self.topology = "vpi-pair"
        self.up()
        masks = [self.on("h0", "cat", f"/sys/class/infiniband/simverbs0/ports/{port}/cap_mask")[1]
                 for port in (1, 2)]
        self.assertRegex(masks[0], "^0x0[0-9a-f]{7}\n$")
        self.assertEqual(masks[1], "0x00010000\n")


class Trial(World):
    """`simverbs settings` tries what the environment has."""

    def refused(self, told, **settings):
        self.environment.update({"SIMVERBS_" + name: value for name, value in settings.items()})
        status, text = self.simverbs("settings")
        for name in settings:
            del self.environment["SIMVERBS_" + name]
        self.assertEqual(status, 2, settings)
        self.assertRegex(text, told)

    def test_what_cannot_work_is_named(self):
        self.assertEqual(self.simverbs("settings")[0], 0)
        self.refused("SIMVERBS_TOPOLOGY='x': ", TOPOLOGY="x")
        self.refused("SIMVERBS_TOPOLOGY='./nosuch.yaml': .*No such file", TOPOLOGY="./nosuch.yaml")
        self.refused("SIMVERBS_HOST='h7': the topology has no such host", HOST="h7")
        for name in ("TRACE", "PCAP", "DIGEST"):
            self.refused(f"SIMVERBS_{name}='/nonexistent/a': cannot be written: No such file",
                         **{name: "/nonexistent/a"})
        self.refused("SIMVERBS_COVERAGE='/dev/null': Not a directory", COVERAGE="/dev/null")
        self.refused("SIMVERBS_SERVER='/nonexistent/s': no world is served", SERVER="/nonexistent/s")
        for server in ("/nope", "nope"):
            self.refused(f"SIMVERBS_SERVER='{server}': no world is served at '{server}'",
                         SERVER=server)
        for name in ("WARN", "SUMMARY", "TRACE_FLUSH"):
            for value in ("false", "off", "2", "00"):
                self.refused(f"SIMVERBS_{name}='{value}' is neither 1 nor 0", **{name: value})
        self.refused("SIMVERBS_SCENARIO='./no.yaml': ./no.yaml: cannot be read", SCENARIO="./no.yaml")
        self.refused("SIMVERBS_DEVICES='/nonexistent': there is no such", DEVICES="/nonexistent")

    def test_what_works_is_not(self):
        self.up()
        socket_path = f"{self.folder}/simverbs/w.sock"
        self.environment.update(SIMVERBS_TRACE=os.path.join(self.folder, "t"),
                                SIMVERBS_COVERAGE=os.path.join(self.folder, "c"),
                                SIMVERBS_SERVER=socket_path, SIMVERBS_HOST="h1")
        self.assertEqual(self.simverbs("settings")[0], 0)
        self.refused("SIMVERBS_HOST='h9': the world has no such host; it has h0, h1", HOST="h9")


if __name__ == "__main__":
    unittest.main()
