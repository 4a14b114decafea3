"""Tests programs with an embedded world, started by `simverbs exec`.

    SIMVERBS=build/dev/bin/simverbs ... python3 embedded.py Exec     (as commands.py)
"""

import json
import os
import re
import signal
import subprocess
import threading
import unittest

import operators
from commands import LIBRARIES, PATIENCE_S, SCENARIOS, SIMVERBS

# A scenario that fails for a program without queue pairs.
EXPECTS_A_SEND = "fabric: star:3\nrun: {seed: 5}\nexpect: {completions: {h0/1: [{id: 1}]}}\n"

# A program that sets its own topology, its first argument.
SETS_TOPOLOGY = f"""
import ctypes, sys
library = ctypes.CDLL("{LIBRARIES}/libsimverbs.so.0")
library.simverbs_set_topology(sys.argv[1].encode())
count = ctypes.c_int()
library.ibv_get_device_list(ctypes.byref(count))
print(count.value, "devices")
"""


class Exec(operators.World):
    def exec_(self, *words):
        return self.simverbs("exec", *words)

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def devices(self, *words):
        status, text = self.exec_(*words, "ibv_devices")
        self.assertEqual(status, 0, text)
        return len(re.findall(r"simverbs\d", text))

    def test_a_program_has_the_devices_of_its_topology(self):
        self.assertEqual(self.devices("--"), 2)
        self.assertEqual(self.devices("--topology", "star:4", "--"), 4)
        self.assertEqual(self.devices("--topology=star:4", "--host=h1", "--"), 1)
        self.environment["SIMVERBS_TOPOLOGY"] = "star:3"
        self.assertEqual(self.devices(), 3)
        self.assertEqual(self.devices("--topology", "pair"), 2)

    def test_every_setting_of_embedded_worlds_is_an_option(self):
        table = self.simverbs("settings", "--markdown")[1].splitlines()[2:]
        names = [line.split("`")[1] for line in table]
        options = {"--" + name[len("SIMVERBS_"):].lower().replace("_", "-") for name in names}
        text = self.exec_("--help")[1].partition("Options:\n")[2]
        told = set(re.findall(r"^  (?:-h,)?(--[a-z-]+)", text, re.M)) - {"--help"}
        self.assertEqual(told, options - {"--server", "--devices"})
        self.assertGreater(len(told), 18)

    def test_options_are_variables_of_the_program(self):
        values = {"topology": "pair", "personality": "rxe", "routing": "min-hop", "seed": "0x10",
                  "first-psn": "7", "first-qpn": "9", "keys": "random", "sm": "sweep",
                  "schedule": "serial", "order": "7", "spin-ms": "3", "memlock": "rlimit",
                  "host": "h1",
                  "trace": "/dev/null", "pcap": "/dev/null", "digest": "/dev/null",
                  "coverage": self.folder}
        words = [f"--{name}={value}" for name, value in values.items()]
        switches = ["warn", "summary", "trace-flush"]
        status, text = self.exec_(*words, *[f"--{name}" for name in switches], "--", "env")
        self.assertEqual(status, 0, text)
        values.update({name: "1" for name in switches})
        self.assertEqual(
            {line for line in text.splitlines() if line.startswith("SIMVERBS_")},
            {f"SIMVERBS_{name.upper().replace('-', '_')}={value}"
             for name, value in values.items()})
        self.assertIn(f"\nLD_LIBRARY_PATH={LIBRARIES}", text)

    def test_the_library_path_of_the_user_stays(self):
        self.environment["LD_LIBRARY_PATH"] = "/nowhere"
        text = self.exec_("--", "env")[1]
        self.assertIn(f"LD_LIBRARY_PATH={LIBRARIES}:/nowhere\n", text)

    def test_words_of_the_program_are_its_own(self):
        for words in (["--"], [], ["--seed", "7"], ["--warn"], ["--seed=7", "--"]):
            self.assertEqual(self.exec_(*words, "echo", "-n", "--seed", "x", "--help", "--"),
                             (0, "--seed x --help --"), words)

    def test_a_trace_a_capture_and_a_summary(self):
        status, text = self.exec_("--trace", f"{self.folder}/t", "--pcap", f"{self.folder}/p",
                                  "--digest", f"{self.folder}/d", "--summary", "ibv_devinfo")
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r"run digest [0-9a-f]{16} of \d+ records, deterministic\n")
        self.assertIn("schema", json.loads(self.read("t").splitlines()[0]))
        self.assertGreater(os.path.getsize(f"{self.folder}/p"), 0)
        self.assertIn(re.search("run digest ([0-9a-f]+)", text).group(1), self.read("d"))

    def test_a_scenario_judges_the_program(self):
        scenario = self.write("s.yaml", EXPECTS_A_SEND)
        status, text = self.exec_("--scenario", scenario, "--", "ibv_devices")
        self.assertEqual((status, len(re.findall(r"simverbs\d ", text))), (1, 3), text)
        self.assertIn("FAIL", text)

    def test_what_the_scenario_says_is_not_said_again(self):
        scenario = self.write("s.yaml", EXPECTS_A_SEND)
        for option, told in (("--seed=1", "--seed and the scenario, which has run: seed:, exclude"),
                             ("--topology=pair", "--topology and the scenario, which has fabric:")):
            status, text = self.exec_("--scenario", scenario, option, "--", "ibv_devices")
            self.assertEqual(status, 2)
            self.assertIn("simverbs: exec: " + told, text)
        self.assertEqual(self.exec_("--scenario", scenario, "--keys=random", "true")[0], 0)

    def test_a_scenario_is_read_once(self):
        pipe = os.path.join(self.folder, "pipe")
        os.mkfifo(pipe)
        threading.Thread(target=self.write, args=("pipe", EXPECTS_A_SEND), daemon=True).start()
        status, text = self.exec_("--scenario", pipe, "--seed=1", "--", "true")
        self.assertEqual(status, 2, text)
        self.assertIn("--seed and the scenario", text)

    def test_faults_name_what_the_fabric_of_the_program_has(self):
        scenario = self.write("s.yaml",
                              "faults: [{action: link_down, link: h3-s0, when: {at: 1s}}]\n")
        for topology, status, told in [("star:4", 0, "4 devices"), ("star:3", 1, "s.yaml:1:")]:
            got = self.exec_("--scenario", scenario, "--", "python3", "-c", SETS_TOPOLOGY, topology)
            self.assertEqual((got[0], told in got[1]), (status, True), got)
            option = f"--topology={topology}"
            got = self.exec_("--scenario", scenario, option, "--", "ibv_devices")
            self.assertEqual((got[0], "s.yaml:1:" in got[1]), (status, status == 1), got)

    def test_a_scenario_that_starts_programs_is_refused(self):
        scenario = self.write("s.yaml", "hosts: {h0: {run: 'true'}}\n")
        status, text = self.exec_("--scenario", scenario, "--", "ibv_devices")
        self.assertEqual(status, 2)
        self.assertRegex(text, "exec: --scenario '.*s.yaml': a scenario that starts programs")

    def test_installed_scenarios_and_topologies_are_found(self):
        name = sorted(os.listdir(f"{SCENARIOS}/../topologies"))
        name = next(each for each in name if each.endswith(".yaml"))
        self.assertGreater(self.devices(f"--topology=scenarios/topologies/{name}"), 1)
        text = self.exec_("--scenario=scenarios/library/status_success.yaml", "--", "env")[1]
        self.assertRegex(text, "SIMVERBS_SCENARIO=/.*/status_success.yaml\n")

    def test_wrong_values_are_errors_of_exec(self):
        for words, told in [
            (["--topology", "x"], "exec: --topology 'x': \"x\" is no topology"),
            (["--topology", "./no.yaml"], "exec: --topology './no.yaml': .*No such file"),
            (["--host", "h9"], "exec: --host 'h9': the topology has no such host"),
            (["--personality", "x"], "exec: --personality: 'x' is none of spec, connectx6"),
            (["--seed", "-1"], "exec: --seed: -1 is below 0"),
            (["--first-qpn", "65536"], "exec: --first-qpn: '65536' is not a number from 0 to 65535"),
            (["--scenario", "./no.yaml"], "exec: --scenario './no.yaml': .*cannot be read"),
            (["--trace", "/no/t"], "exec: --trace '/no/t': cannot be written: No such file"),
            (["--coverage", "/dev/null"], "exec: --coverage '/dev/null': Not a directory"),
            (["--sede"], "exec: no option '--sede': did you mean \"--seed\""),
            (["--warn=0"], "exec: "),
            ([], None),
        ]:
            status, text = self.exec_(*words, "--", "echo", "started")
            self.assertEqual((status, "started" in text), (2, False) if told else (0, True), words)
            self.assertRegex(text, "^simverbs: " + told if told else "started")

    def test_wrong_variables_are_named_as_such(self):
        self.environment.update(SIMVERBS_SM="swep", SIMVERBS_SEED="x")
        status, text = self.exec_("--seed", "1", "--", "echo", "started")
        self.assertEqual(status, 2)
        self.assertEqual(text, "simverbs: exec: SIMVERBS_SM='swep' is none of startup, sweep, none: "
                               "did you mean \"sweep\"?\n")

    def test_statuses_are_those_of_env(self):
        script = self.write("script", "#!/bin/sh\n")
        for status, words in ((5, ["sh", "-c", "exit 5"]), (127, ["nosuch"]), (127, ["./nosuch"]),
                              (126, [script]), (126, [self.folder]), (2, []), (2, ["--"])):
            self.assertEqual(self.exec_(*words)[0], status, words)
        self.assertIn("exec: a program is missing: simverbs exec [OPTIONS] -- PROGRAM",
                      self.exec_("--seed", "1", "--")[1])
        self.up()  # `on` has the same ones
        for status, program in ((127, "./nosuch"), (126, script)):
            self.assertEqual(self.on("h0", program)[0], status)

    def test_the_command_becomes_the_program(self):
        with subprocess.Popen([SIMVERBS, "exec", "--", "sh", "-c", "echo $$; exec sleep 100"],
                              env=self.environment, stdout=subprocess.PIPE, text=True) as process:
            self.assertEqual(int(process.stdout.readline()), process.pid)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(PATIENCE_S), -signal.SIGTERM)

    def test_it_leaves_a_served_world(self):
        self.up()
        status, text = self.on("h1", SIMVERBS, "exec", "--topology", "star:3", "ibv_devices")
        self.assertEqual((status, len(re.findall(r"simverbs\d ", text))), (0, 3), text)

    def test_a_program_that_finds_no_device_is_named(self):
        status, text = self.exec_("--", "/sbin/ldconfig", "--version")
        self.assertEqual(status, 0)
        self.assertIn("simverbs: /sbin/ldconfig is statically linked, so it does not load", text)


if __name__ == "__main__":
    unittest.main()
