"""Directives whose text comes from the program and its tables, so that no second copy gets stale."""

import json
import pathlib
import re
import subprocess

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

import command_help
import events
import schema_keys


def inline(text):
    """Text with `words in backquotes` as literals."""
    made = []
    for number, part in enumerate(re.split("`([^`]*)`", text)):
        if part:
            made.append(nodes.literal(part, part) if number % 2 else nodes.Text(part))
    return made


def paragraph(text):
    return nodes.paragraph("", "", *inline(text))


def sentence(text):
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", ":", "?")) else text + "."


def cells_of(line):
    """The cells of a line of a table in Markdown."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def item(term, *content, ids=()):
    name = nodes.term("", "", *(term if isinstance(term, list) else [nodes.literal(term, term)]))
    name["ids"].extend(ids)
    return nodes.definition_list_item("", name, nodes.definition("", *content))


class FromProgram(SphinxDirective):
    def ask(self, *words):
        program = self.config.simverbs_command
        self.env.note_dependency(program)
        return subprocess.run(
            [program, *words], check=True, capture_output=True, text=True, timeout=60
        ).stdout

    def help_of(self, words):
        self.env.note_dependency(self.config.simverbs_command)
        return command_help.read(self.config.simverbs_command, words)

    def section(self, title, *content):
        made = nodes.section("", nodes.title("", "", *inline(title)), *content)
        made["ids"].append(nodes.make_id(title))
        return made


class Synopsis(FromProgram):
    """`{synopsis} fabric`: how the command and those below it are written."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self):
        words = self.arguments[0].split() if self.arguments else []
        told = self.help_of(words)
        below = [self.help_of([*words, name]).usage for name in told.commands if words]
        text = "\n".join(below or [told.usage])
        return [
            nodes.paragraph("", sentence(told.description)),
            nodes.literal_block(text, text, language="none"),
        ]


class Options(FromProgram):
    """`{options} run`: what --help says of the words and options of a command."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self):
        words = self.arguments[0].split() if self.arguments else []
        return self.options_of(words)

    def options_of(self, words):
        program = "-".join(["simverbs", *words])
        domain = self.env.get_domain("std")
        told = self.help_of(words)
        listed = nodes.definition_list()
        for section in ("Positionals", "Options"):
            for entry in told.sections.get(section, []):
                ids = []
                if entry.names[0] == "-h" and len(words) > 1:
                    continue  # stands with the options of the command above
                if section == "Options":
                    ids = [f"{program}{name}" for name in entry.names]
                    for name, target in zip(entry.names, ids):
                        domain.add_program_option(program, name, self.env.docname, target)
                term = entry.term.replace(",--", ", --")
                listed += item(term, paragraph(sentence(entry.text)), ids=ids)
        made = [listed]
        if told.footer:
            made.append(nodes.literal_block(told.footer, told.footer, language="none"))
        return made


class Subcommands(Options):
    """`{subcommands} fabric`: its options, then a section for each command below it, with its
    example."""

    def run(self):
        words = self.arguments[0].split()
        made = self.options_of(words)
        for name in self.help_of(words).commands:
            told = self.help_of([*words, name])
            made.append(
                self.section(
                    " ".join([*words, name]),
                    nodes.paragraph("", sentence(told.description)),
                    *self.options_of([*words, name]),
                    nodes.literal_block(told.example, told.example, language="none"),
                )
            )
        return made


class Commands(FromProgram):
    """The commands of `simverbs`, each with a link to its page."""

    def run(self):
        listed = nodes.definition_list()
        for entry in self.help_of([]).sections["Subcommands"]:
            reference = addnodes.pending_xref(
                "",
                nodes.literal("", f"simverbs {entry.term}"),
                refdomain="std",
                reftype="doc",
                refexplicit=True,
                refwarn=True,
                reftarget=f"/man/simverbs-{entry.term}.1",
                refdoc=self.env.docname,
            )
            listed += item([reference], nodes.paragraph("", sentence(entry.text)))
        return [listed]


class ExitStatuses(FromProgram):
    def run(self):
        listed = nodes.definition_list()
        for entry in self.help_of([]).statuses:
            listed += item(entry.term, nodes.paragraph("", sentence(entry.text)))
        return [listed]


class Settings(FromProgram):
    """The settings of a world: variable, option, key, values and meaning."""

    def run(self):
        domain = self.env.get_domain("std")
        listed = nodes.definition_list()
        for line in self.ask("settings", "--markdown").splitlines()[2:]:
            variable, option, key, values, meaning = cells_of(line)
            name = variable.strip("`")
            places = [f"option {option}"] if option else []
            places += [f"`run:` key {key}"] if key else []
            content = [paragraph(meaning)]
            if values:
                content.append(paragraph(f"Values: {values}."))
            if places:
                content.append(paragraph(f"Also {', '.join(places)}."))
            domain.note_object("envvar", name, name)
            listed += item(name, *content, ids=[name])
        return [listed]

class ScenarioKeys(FromProgram):
    """The keys of scenarios, from the schema."""

    def run(self):
        schema = json.loads(self.ask("scenario", "--schema"))
        return [
            self.section(f"`{title}`", *content)
            for title, content in schema_keys.sections(schema, item, paragraph)
        ]


class FaultActions(FromProgram):
    """The actions of faults, from the generated table simverbs/model/FAULT_ACTIONS.md."""

    COLUMNS = ("Waits for", "Target", "Required", "Optional", "Can affect", "Can begin")

    def run(self):
        path = pathlib.Path(self.config.simverbs_sources, "simverbs/model/FAULT_ACTIONS.md")
        self.env.note_dependency(str(path))
        listed = nodes.definition_list()
        for line in path.read_text(encoding="utf-8").splitlines():
            if not re.match(r"\| \d", line):
                continue
            _, action, done_to, *others = cells_of(line)
            said = [f"{name}: {cell}." for name, cell in zip(self.COLUMNS, others) if cell != "-"]
            listed += item(action.strip("`"), paragraph(f"Done to: {done_to}. {' '.join(said)}"))
        return [listed]


class TraceRecords(FromProgram):
    """The kinds of trace records, from the structs that raise them."""

    def run(self):
        found = events.read(self.config.simverbs_sources)
        made = []
        for category, kinds in found.items():
            listed = nodes.definition_list()
            for kind in kinds:
                self.env.note_dependency(kind.file)
                fields = ", ".join(
                    f"`{name}` ({said})" if said else f"`{name}`"
                    for name, said in kind.fields.items()
                )
                content = [paragraph(sentence(kind.comment))] if kind.comment else []
                content.append(paragraph(f"Fields: {fields}." if fields else "No fields."))
                listed += item(kind.name, *content)
            made.append(self.section(f"`{category}`", listed))
        return made


class TablesAsLists(SphinxPostTransform):
    """Tables of man pages as lists, which a terminal of any width can show: a row is what its first
    cell says, explained by the others."""

    builders = ("man",)
    default_priority = 100

    def run(self):
        for table in list(self.document.findall(nodes.table)):
            heads = [entry.astext() for entry in next(table.findall(nodes.thead))[0]]
            listed = nodes.definition_list()
            for row in next(table.findall(nodes.tbody)):
                first, *others = row
                content = []
                for head, entry in zip(heads[1:], others):
                    for child in entry:
                        if len(others) > 1:
                            child.insert(0, nodes.Text(f"{head[:1].upper()}{head[1:]}: "))
                        content.append(child)
                term = [child for each in first for child in each]
                listed += item(term or [nodes.Text("-")], *content)
            table.replace_self(listed)


def setup(app):
    app.add_post_transform(TablesAsLists)
    app.add_config_value("simverbs_command", None, "env")
    app.add_config_value("simverbs_sources", None, "env")
    for name, directive in (
        ("synopsis", Synopsis),
        ("options", Options),
        ("subcommands", Subcommands),
        ("commands", Commands),
        ("exit-statuses", ExitStatuses),
        ("settings", Settings),
        ("scenario-keys", ScenarioKeys),
        ("fault-actions", FaultActions),
        ("trace-records", TraceRecords),
    ):
        app.add_directive(name, directive)
    return {"parallel_read_safe": True}
