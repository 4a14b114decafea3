"""Tests worlds that stay and have the fabric and the faults of a scenario.

    SIMVERBS=build/dev/bin/simverbs ... python3 scenario_worlds.py ScenarioWorlds  (as commands.py)
"""

import json
import os
import signal
import subprocess
import unittest

import operators
from commands import PATIENCE_S, SCENARIOS, SIMVERBS

CUT = """
fabric: star:3
faults: [{name: cut, action: link_down, link: h2-s0, when: {at: 1ms}}]
"""
INLINE = """
fabric:
  hosts: {h0..2: }
  switches: {s0: }
  links: [{ends: [h0..2, s0]}]
"""


class ScenarioWorlds(operators.World):
    def up_with(self, text, *options):
        file = self.write("faulty.yaml", text)
        return self.simverbs("up", "--scenario", file, "--world", "w", *options)

    def status(self):
        status, text = self.simverbs("status", "--json", "--world", "w")
        self.assertEqual(status, 0, text)
        return json.loads(text)

    def refused(self, told, *words):
        status, text = self.simverbs("up", "--world", "w", *words)
        self.assertEqual(status, 2, text)
        self.assertIn(told, text)
        self.assertEqual(self.sockets(), [])

    def test_have_its_fabric_and_its_faults(self):
        trace = f"{self.folder}/run.jsonl"
        self.assertEqual(self.up_with(CUT, "--trace", trace),
                         (0, f"{self.folder}/faulty.yaml is up; start programs with: simverbs on "
                             "--world w HOST -- COMMAND\n"))
        self.assertEqual(self.status()["topology"], "star:3")
        self.assertIn("State: Down", self.on("h2", "ibstat")[1])
        self.assertIn("State: Active", self.on("h0", "ibstat")[1])
        status, text = self.simverbs("down", "--world", "w")
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r"run digest \w+ of \d+ records, not deterministic \(schedule free")
        with open(trace, encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        fired = [record for record in records if "fault_fired" in record.values()]
        self.assertEqual(len(fired), 1, fired)
        self.assertEqual(fired[0]["time"], 10**9)

    def test_have_settings_of_served_worlds_where_it_names_none(self):
        self.assertEqual(self.up_with(CUT)[0], 0)
        self.assertIn("subnet manager: MASTER", self.simverbs("fabric", "sm", "--world", "w")[1])
        self.assertIn("schedule free", self.simverbs("down", "--world", "w")[1])
        self.assertEqual(self.up_with("run: {seed: 7, schedule: canonical}")[0], 0)
        self.assertEqual([self.status()["topology"], self.status()["seed"]], ["star:2", 7])
        self.assertNotIn("schedule free", self.simverbs("down", "--world", "w")[1])

    def test_leave_the_subnet_manager_to_the_operator(self):
        self.assertEqual(self.up_with("fabric: star:2", "--sm", "none")[0], 0)
        self.assertEqual({host["hcas"][0]["state"] for host in self.status()["hosts"]}, {"INIT"})

    def test_call_a_fabric_that_stands_in_the_file_by_its_name(self):
        self.assertEqual(self.up_with(INLINE)[0], 0)
        file = f"{self.folder}/faulty.yaml"
        self.assertEqual(self.status()["topology"], file)
        self.assertIn(f"topology '{file}' has no link 'h9-s0'",
                      self.simverbs("fabric", "link", "h9-s0", "down", "--world", "w")[1])

    def test_are_changed_by_set(self):
        self.assertEqual(self.up_with(CUT, "--set", "fabric=star:4")[0], 0)
        self.assertEqual(len(self.status()["hosts"]), 4)

    def test_are_refused_beside_what_a_scenario_has(self):
        file = self.write("faulty.yaml", CUT)
        self.refused("topology excludes --scenario", "star:2", "--scenario", file)
        self.refused("--scenario excludes --seed", "--scenario", file, "--seed", "7")
        self.refused("--set requires --scenario", "star:2", "--set", "run.seed=7")
        self.refused("up needs a topology or a scenario: simverbs up star:2, or simverbs up "
                     "--scenario FILE")

    def test_of_wrong_scenarios_leave_nothing(self):
        file = self.write("wrong.yaml", CUT.replace("h2-s0", "h9-s0"))
        self.refused(f"{file}:3:", "--scenario", file)
        self.refused("h9-s0", "--scenario", file)
        # Found where the fault is put in place, in the server.
        file = self.write("wrong.yaml", CUT.replace("link: h2-s0,", "link: h2-s0, bits: 1,"))
        self.refused(f"{file}:3:10: ", "--scenario", file)
        self.refused(f"{file}:3:10: ", "--scenario", file, "--foreground")
        self.assertEqual(self.up_with(CUT)[0], 0)

    def test_are_no_folders(self):
        self.refused(f"{self.folder}: cannot be read: it is a folder", "--scenario", self.folder)
        status, text = self.simverbs("topology", "check", self.folder)
        self.assertEqual(status, 2, text)

    def test_have_no_operations(self):
        self.refused("(up has no programs of operations; simverbs scenario FILE runs this file)",
                     "--scenario", f"{SCENARIOS}/story_flapping_port.yaml")

    def test_say_what_they_ignore(self):
        status, text = self.up_with(CUT + "run: {time_limit: 1s}\nhosts: {h0: {run: 'false'}}\n"
                                          "expect: {fired: {cut: 2}}\n")
        self.assertEqual(status, 0, text)
        self.assertEqual(text.splitlines()[0],
                         f"simverbs: {self.folder}/faulty.yaml: the world stays, so expect is not "
                         "judged, the programs of its hosts are not started, time_limit ends "
                         "nothing")
        self.assertEqual(self.simverbs("down", "--world", "w")[0], 0)

    def test_in_the_foreground_print_their_summary(self):
        file = self.write("faulty.yaml", CUT)
        server = subprocess.Popen(
            [SIMVERBS, "up", "--scenario", file, "--foreground", "--world", "w"],
            env=self.environment, stderr=subprocess.PIPE, text=True)
        while self.simverbs("status", "--world", "w")[0] != 0:
            self.assertIsNone(server.poll())
        self.assertIn("State: Down", self.on("h2", "ibstat")[1])
        server.send_signal(signal.SIGTERM)
        self.assertIn("run digest", server.communicate(timeout=PATIENCE_S)[1])
        self.assertEqual(server.returncode, 143)
        self.assertEqual(self.sockets(), [])
        self.assertTrue(os.path.exists(file))


if __name__ == "__main__":
    unittest.main()
