"""Explores the GoogleTest program three_tests, and reads each report.

    python3 google_test.py SIMVERBS PROGRAM
"""

import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SIMVERBS, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:3])
PATIENCE_S = 120
# What users may have set for other runs; each would spoil the list or the single tests.
SPOILING = {"GTEST_FILTER": "No.Such", "GTEST_OUTPUT": "xml:report.xml", "GTEST_TOTAL_SHARDS": "3",
            "GTEST_SHARD_INDEX": "2", "GTEST_BREAK_ON_FAILURE": "1"}
VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(html.parser.HTMLParser):
    """Refuses elements that are not closed and whatever another file or the network has."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.data, self.text = [], set(), "", ""
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        assert "src" not in attributes, attributes
        assert attributes.get("href", "#").startswith(("#", "data:")), attributes
        if "id" in attributes:
            assert attributes["id"] not in self.ids, attributes
            self.ids.add(attributes["id"])
        if tag not in VOID:
            self.open.append((tag, attributes.get("id")))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] == ("script", "data"):
            self.data += data
        self.text += data


class GoogleTest(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="explore-gtest-")
        self.addCleanup(place.cleanup)
        self.folder = place.name

    def explore(self, *words, program=(PROGRAM,), environment=()):
        ended = subprocess.run(
            [SIMVERBS, "explore", *words, "--", *program], cwd=self.folder, text=True,
            env={**os.environ, **dict(environment)}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=PATIENCE_S, check=False)
        return ended.returncode, ended.stdout

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def test_reports(self):
        texts = []
        for jobs in ("1", "2"):
            status, text = self.explore(
                "--gtest", "--only", "packets,receives", "-j", jobs, "--junit", "found.xml",
                "--json", f"found-{jobs}.json", "--html", "found.html", environment=SPOILING)
            self.assertEqual(status, 1, text)
            texts.append(text)
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(self.read("found-1.json"), self.read("found-2.json"))
        self.assertFalse(os.path.exists(f"{self.folder}/report.xml"))
        self.check_text(texts[0])
        found = json.loads(self.read("found-1.json"))
        self.check_json(found)
        self.check_junit(xml.etree.ElementTree.fromstring(self.read("found.xml")))
        self.check_page(Page(self.read("found.html")), found)
        self.check_replay(found)

    def check_text(self, text):
        self.assertRegex(text, r"(?m)^TEST Messages.AreReceived\n.*; 0 findings$")
        self.assertRegex(text, r"(?m)^TEST Impatient.IsAcknowledged\nFINDING 1: failed ")
        self.assertIn("TEST Numbers.Add: sends no packet and calls no verb that can fail\n", text)
        self.assertRegex(text, r"\n3 tests: 1 with findings, 1 without, 1 not explored; "
                               r"\d findings\n$")
        self.assertNotIn("DISABLED", text)

    def check_json(self, found):
        tests = {test["test"]: test for test in found["tests"]}
        self.assertEqual(list(tests), ["Messages.AreReceived", "Impatient.IsAcknowledged",
                                       "Numbers.Add"])
        self.assertEqual(tests["Messages.AreReceived"]["findings"], [])
        self.assertGreater(tests["Messages.AreReceived"]["branches_of_one"], 5)
        self.assertIn("drop of SEND_ONLY, PSN 1 of h0/1, transmission 1",
                      [finding["faults"][0]["name"]
                       for finding in tests["Impatient.IsAcknowledged"]["findings"]])
        self.assertEqual(tests["Impatient.IsAcknowledged"]["not_explored"], "")
        self.assertIn("sends no packet", tests["Numbers.Add"]["not_explored"])

    def check_junit(self, suite):
        self.assertEqual(suite.tag, "testsuite")
        self.assertEqual([suite.get(name) for name in ("tests", "failures", "errors", "skipped")],
                         ["3", "1", "0", "1"])
        cases = {(case.get("classname"), case.get("name")): case for case in suite}
        self.assertEqual(len(cases), 3)
        for case in suite:
            self.assertGreaterEqual(float(case.get("time")), 0)
        self.assertEqual(len(cases["explore.Messages", "AreReceived"]), 0)
        self.assertEqual(cases["explore.Numbers", "Add"][0].tag, "skipped")
        failure = cases["explore.Impatient", "IsAcknowledged"].find("failure")
        self.assertIn("PSN 1 of h0/1", failure.get("message"))
        self.assertRegex(failure.text, r"replay: simverbs exec --warn --scenario \./explore-1\.yaml -- "
                                       r"\S+ '--gtest_filter=Impatient\.IsAcknowledged'")

    def check_page(self, page, found):
        data = json.loads(page.data)
        maps = {each["name"]: each for each in data["tests"]}
        self.assertEqual(list(maps), ["Messages.AreReceived", "Impatient.IsAcknowledged"])
        impatient = maps["Impatient.IsAcknowledged"]
        self.assertEqual(impatient["hosts"], ["h0", "h1"])
        packets = [row for row in impatient["rows"] if row[2] != 2]
        self.assertEqual([row[3:5] for row in packets[:2]], [[0, 1], [1, 0]])
        self.assertEqual(impatient["columns"][0], ["drop", "packets", "drop of @"])
        self.assertEqual(packets[0][5][0], "F")
        self.assertEqual(packets[0][6][0], [0, 1])
        cells = "".join(row[5] for row in maps["Messages.AreReceived"]["rows"]).replace(" ", "")
        self.assertEqual(set(cells), {"."})
        findings = sum(len(test["findings"]) for test in found["tests"])
        self.assertEqual(len([name for name in page.ids if name.startswith("finding-")]), findings)
        self.assertIn(self.read("explore-1.yaml"), page.text)

    def check_replay(self, found):
        """Each finding has a file of its own, which makes its test fail again."""
        findings = [finding for test in found["tests"] for finding in test["findings"]]
        files = [finding["scenario"] for finding in findings]
        self.assertEqual(files, [f"./explore-{i + 1}.yaml" for i in range(len(files))])
        self.assertGreater(len(files), 1)
        environment = {**os.environ,
                       "PATH": f"{os.path.dirname(SIMVERBS)}:{os.environ['PATH']}"}
        ended = subprocess.run(findings[0]["replay"], shell=True, cwd=self.folder, text=True,
                               env=environment, stdout=subprocess.PIPE, timeout=PATIENCE_S,
                               check=False)
        self.assertEqual(ended.returncode, 1, ended.stdout)
        self.assertIn("1 FAILED TEST", ended.stdout)

    def test_arguments_choose_tests(self):
        status, text = self.explore("--gtest", "--only", "calls",
                                    program=(PROGRAM, "--gtest_filter=Numbers.*"))
        self.assertEqual(status, 0, text)
        self.assertEqual(len(re.findall("(?m)^TEST ", text)), 1)
        status, text = self.explore(
            "--gtest", program=(PROGRAM, "--gtest_filter=Numbers.*",
                                "--gtest_also_run_disabled_tests"))
        self.assertEqual(status, 0, text)
        self.assertIn("TEST Numbers.DISABLED_Divide: fails without faults: it ended with 1", text)

    def test_the_budget_is_that_of_all_tests(self):
        status, text = self.explore("--gtest", "--budget", "1ms")
        self.assertEqual(status, 0, text)
        self.assertIn("TEST Numbers.Add: not tried: the budget is over\n", text)

    def test_what_is_wrong_is_said(self):
        for words, program, says in (
                (["--gtest"], ["true"], "true --gtest_list_tests: it printed no test"),
                (["--gtest"], ["sh", "-c", "sleep 60"], "it did not end within 10 s"),
                (["--gtest", "--host", "h7"], [PROGRAM], "--host h7: no such host"),
                (["--gtest", "some.yaml"], ["true"], "--gtest takes a GoogleTest program"),
                (["--gtest", "--html", "/no/such/folder/a.html"], [PROGRAM], "cannot be written")):
            status, text = self.explore(*words, program=program)
            self.assertEqual(status, 2, text)
            self.assertIn(says, text)

    def test_a_scenario_is_one_testcase(self):
        with open(f"{self.folder}/ping.yaml", "w", encoding="utf-8") as file:
            file.write("connections: {c: {between: [h0, h1], retries: 0}}\n"
                       "hosts: {h0: {do: [{write: {qp: c}}, {poll: {qp: c, status: SUCCESS}}]}}\n")
        ended = subprocess.run(
            [SIMVERBS, "explore", "ping.yaml", "--only", "packets", "--junit", "found.xml",
             "--html", "found.html"], cwd=self.folder, stdout=subprocess.PIPE,
            timeout=PATIENCE_S, check=False)
        self.assertEqual(ended.returncode, 1)
        suite = xml.etree.ElementTree.fromstring(self.read("found.xml"))
        self.assertEqual([(case.get("classname"), case.get("name")) for case in suite],
                         [("explore", "ping.yaml")])
        self.assertGreater(len(suite[0].findall("failure")), 1)
        self.assertEqual(len(json.loads(Page(self.read("found.html")).data)["tests"]), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
