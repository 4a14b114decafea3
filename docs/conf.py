"""Sphinx reads the manual with this: what is built, and which man pages there are."""

import os
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER))

import command_help  # noqa: E402

project = "simverbs"
author = "the simverbs authors"
copyright = f"{author}; license: BSD-2-Clause"
version = release = re.search(
    r"project\(simverbs VERSION ([0-9.]+)",
    (FOLDER.parent / "CMakeLists.txt").read_text(encoding="utf-8"),
).group(1)

extensions = ["myst_parser", "tables", "blocks", "header"]
exclude_patterns = ["README.md", "*/README.md"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
nitpicky = True
smartquotes = False
highlight_language = "none"

# The tables of the manual come from this program and these sources.
simverbs_command = os.environ["SIMVERBS"]
simverbs_sources = str(FOLDER.parent)

html_theme = "alabaster"
html_title = f"simverbs {version}"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_static_path = ["manual.css"]
html_css_files = ["manual.css"]
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}
html_theme_options = {
    "description": "RDMA verbs on simulated devices",
    "page_width": "1240px",
    "sidebar_width": "250px",
    "fixed_sidebar": True,
    "show_powered_by": False,
}


def describe(page):
    """A man page's name, section and the words behind the dash of its NAME."""
    text = page.read_text(encoding="utf-8")
    subject = re.match("---\nsubject: (.*)\n---\n", text)
    name, section = re.search(r"^# (\S+)\((\d)\)$", text, re.MULTILINE).groups()
    if subject:
        words = subject[1]
    else:  # a command: the program says it
        words = command_help.read(simverbs_command, name.split("-", 1)[1:]).description
        words = words[0].lower() + words[1:]
    return (f"man/{page.stem}", name, words, [author], int(section))


man_pages = [describe(page) for page in sorted((FOLDER / "man").glob("simverbs*.md"))]
man_make_section_directory = True
