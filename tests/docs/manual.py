#!/usr/bin/python3
"""Checks that the built manual agrees with the program and its tables: manual.py [TEST...].

Variables: SIMVERBS is the program, SOURCES the repository, MANUAL the folder with html/ and man/.
"""

import html.parser
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

SIMVERBS = os.environ["SIMVERBS"]
SOURCES = pathlib.Path(os.environ["SOURCES"])
MANUAL = pathlib.Path(os.environ["MANUAL"])
sys.path.insert(0, str(SOURCES / "docs"))

import command_help  # noqa: E402
import events  # noqa: E402

OPTION = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")


def text_of(page):
    """A man page as man(1) shows it, without breaks, and what it complains of."""
    wide, narrow = (
        subprocess.run(
            ["man", "-l", "-P", "cat", "--no-hyphenation", "--no-justification", str(page)],
            check=True,
            capture_output=True,
            text=True,
            env=dict(os.environ, MANWIDTH=width, LC_ALL="C.UTF-8"),
        )
        for width in ("2000", "80")
    )
    return re.sub(".\b", "", wide.stdout), wide.stderr + narrow.stderr


def terms_of(roff):
    """The words that the definition lists of a page explain."""
    lines = roff.splitlines()
    for line, following in zip(lines, lines[1:]):
        if line == ".TP":
            yield re.sub(r"\\f.|\\(?=[-%])|^\.B ", "", following).strip()


class Links(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.add(value)
            elif name in ("href", "src"):
                self.links.append(value)


class Html(unittest.TestCase):
    def test_links_lead_somewhere(self):
        pages = {path.resolve(): Links(path) for path in (MANUAL / "html").rglob("*.html")}
        self.assertGreater(len(pages), 20)
        dead, seen = [], 0
        for path, page in pages.items():
            for link in page.links:
                parts = urllib.parse.urlsplit(link)
                if parts.scheme or parts.netloc:
                    continue
                seen += 1
                target = (path.parent / urllib.parse.unquote(parts.path)).resolve()
                target = path if not parts.path else target
                ids = pages[target].ids if target in pages else set()
                if not target.exists() or parts.fragment and parts.fragment not in ids:
                    dead.append(f"{path.name}: {link}")
        self.assertEqual(dead, [])
        self.assertGreater(seen, 500)

    def test_links_of_the_readme_lead_somewhere(self):
        text = (SOURCES / "README.md").read_text(encoding="utf-8")
        links = re.findall(r"\]\(([^)#]+)\)", text)
        self.assertGreater(len(links), 10)
        self.assertEqual([link for link in links if not (SOURCES / link).exists()], [])

    def test_has_a_search(self):
        index = (MANUAL / "html" / "searchindex.js").read_text(encoding="utf-8")
        self.assertIn("retri", index)  # the stem of "retries"


class Pictures(unittest.TestCase):
    def test_are_what_the_program_draws(self):
        with tempfile.TemporaryDirectory() as folder:
            trace, picture = f"{folder}/trace.jsonl", f"{folder}/picture.svg"
            scenario = str(SOURCES / "docs/lost_packet.yaml")
            ladder = ["viz", "ladder", trace, "--packets", "-o", picture]
            for words in (["scenario", scenario, "--trace", trace], ladder):
                subprocess.run([SIMVERBS, *words], check=True, capture_output=True)
            self.assertEqual(
                pathlib.Path(picture).read_text(encoding="utf-8"),
                (SOURCES / "docs/lost_packet.svg").read_text(encoding="utf-8"),
                "simverbs viz ladder --packets draws docs/lost_packet.svg",
            )


class ManPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages, cls.complaints, cls.terms = {}, {}, {}
        for path in sorted((MANUAL / "man").rglob("*.[1-9]")):
            cls.pages[path.name], cls.complaints[path.name] = text_of(path)
            cls.terms[path.name] = set(terms_of(path.read_text(encoding="utf-8")))

    def test_are_those_that_the_manual_names(self):
        commands = {f"simverbs-{name}.1" for name in command_help.read(SIMVERBS, ()).commands}
        others = {
            "simverbs.1", "simverbs.7", "simverbs.h.3",
            "simverbs-scenario.5", "simverbs-topology.5", "simverbs-trace.5",
        }
        self.assertEqual(set(self.pages), commands | others)

    def test_are_good_roff(self):
        self.assertEqual({name: said for name, said in self.complaints.items() if said}, {})

    def test_have_the_options_of_help_and_no_other(self):
        checked = 0
        for page, terms in self.terms.items():
            if not page.endswith(".1"):
                continue
            words = tuple(page[: -len(".1")].split("-")[1:])
            said = set()
            for each in command_help.all_commands(SIMVERBS, words) if words else [()]:
                for entry in command_help.read(SIMVERBS, each).sections["Options"]:
                    said.update(entry.names)
            explained = {
                name
                for term in terms
                if term.startswith("-")
                for name in OPTION.findall(term)
            }
            self.assertEqual(explained, said, page)
            checked += len(said)
        self.assertGreater(checked, 100)

    def test_name_no_option_that_no_command_has(self):
        known = set()
        for each in command_help.all_commands(SIMVERBS):
            for entry in command_help.read(SIMVERBS, each).sections["Options"]:
                known.update(entry.names)
        for source in (SOURCES / "docs").rglob("*.md"):
            text = source.read_text(encoding="utf-8")
            for command in re.findall(r"\bsimverbs (?:[a-z]+ [^\n`]*)", text):
                if command.startswith("simverbs on "):  # the rest is the program's
                    continue
                own = re.split(r" -- |='| '\w+=| \| ", command)[0]
                for option in OPTION.findall(own):
                    self.assertTrue(option in known, f"{source.name}: {option} in: {command}")

    def test_have_each_setting(self):
        table = subprocess.run(
            [SIMVERBS, "settings", "--markdown"], check=True, capture_output=True, text=True
        ).stdout
        variables = re.findall(r"^\| `(\w+)`", table, re.MULTILINE)
        self.assertGreater(len(variables), 15)
        self.assertLessEqual(set(variables), self.terms["simverbs.1"])
        example = {"SIMVERBS_TEST_", "SIMVERBS_TOPOLGY"}  # names of users; a mistake that is shown
        for source in [*(SOURCES / "docs").rglob("*.md"), SOURCES / "README.md"]:
            named = set(re.findall(r"\bSIMVERBS_[A-Z_]+", source.read_text(encoding="utf-8")))
            constants = {name for name in named if name.startswith("SIMVERBS_FAULT_")}
            self.assertEqual(named - constants - example - set(variables), set(), source.name)

    def test_have_each_trace_record(self):
        table = (SOURCES / "scenarios/engine/record_names.hpp").read_text(encoding="utf-8")
        names = set(re.findall(r'"(\w+)"', table))
        found = {kind.name for kinds in events.read(SOURCES).values() for kind in kinds}
        self.assertEqual(found, names)
        self.assertLessEqual(names, self.terms["simverbs-trace.5"])

    def test_have_each_action_of_faults(self):
        table = (SOURCES / "simverbs/model/FAULT_ACTIONS.md").read_text(encoding="utf-8")
        names = re.findall(r"^\| \d+ \| `(\w+)`", table, re.MULTILINE)
        self.assertGreater(len(names), 30)
        self.assertLessEqual(set(names), set(re.findall(r"\w+", self.pages["simverbs-scenario.5"])))

    def test_have_each_key_of_topologies(self):
        page, checked = self.pages["simverbs-topology.5"], set()
        for text in (
            "unknown: 1",
            "{hosts: {h0: {unknown: 1}}}",
            "{switches: {s0: {unknown: 1}}}",
            "{hosts: {h0: , h1: }, links: [{ends: [h0, h1], unknown: 1}]}",
            "{defaults: {unknown: 1}}",
        ):
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                file.write(text + "\n")
                file.flush()
                said = subprocess.run(
                    [SIMVERBS, "topology", "check", file.name], capture_output=True, text=True
                ).stderr
            keys = re.search("valid: (.*)", said)[1].split(", ")
            self.assertEqual([key for key in keys if not re.search(rf"\b{key}\b", page)], [])
            checked.update(keys)
        self.assertGreater(len(checked), 15)
        generators = command_help.read(SIMVERBS, ("topology", "check")).sections["Positionals"][0]
        names = re.findall(r"\bvpi-pair|[a-z][-a-z0-9]+(?=:[A-Z])", generators.text)
        self.assertGreater(len(names), 5)
        self.assertEqual([name for name in names if name not in page], [])

    def test_explain_why_runs_are_marked(self):
        source = (SOURCES / "simverbs/world/run_marks.cpp").read_text(encoding="utf-8")
        table = source[source.index("kSentences{") : source.index("};")]
        guide = (SOURCES / "docs/guides/nondeterminism.md").read_text(encoding="utf-8")
        sentences = [each.replace("{}", "...") for each in re.findall('"(.*)"', table)]
        self.assertGreater(len(sentences), 8)
        self.assertEqual([each for each in sentences if f"| {each} |" not in guide], [])

    def test_have_each_public_function(self):
        declared = set()
        for header in ("simverbs.h", "fault.h", "fault_calls.h"):
            code = (SOURCES / "include/simverbs" / header).read_text(encoding="utf-8")
            code = re.sub(r"/\*.*?\*/", "", code, flags=re.DOTALL)
            declared.update(re.findall(r"^[a-z].*?\b(simverbs_\w+)\(", code, re.MULTILINE))
        self.assertGreater(len(declared), 40)
        words = set(re.findall(r"\w+", self.pages["simverbs.h.3"]))
        self.assertEqual(declared - words, set())


if __name__ == "__main__":
    unittest.main()
