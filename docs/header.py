"""`{header} simverbs.h`: a public header as sections of declarations with their comments."""

import dataclasses
import pathlib
import re
import textwrap

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

SECTION = re.compile(r"^/\* -{4,} (?P<title>[^-]+?) -{4,}[- ]*")
FUNCTION = re.compile(r"\b(simverbs_\w+)\(")


@dataclasses.dataclass
class Part:
    kind: str  # "title", "text", "code", or "comment": what follows is the code it is about
    text: str


def without_marks(comment):
    lines = [re.sub(r"^ ?\*(?: |$)", "", line) for line in comment.split("\n")]
    return "\n".join(lines)


def parts_of(text):
    """Titles, comments that stand for themselves, and code with the comment before it."""
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^#(?!define \w+ ).*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^#define \w+_H\n", "", text, flags=re.MULTILINE)
    position = 0
    while position < len(text):
        if text.startswith("/*", position):
            end = text.index("*/", position) + 2
            is_attached = text[end : end + 1] == "\n" and text[end + 1 : end + 2] not in "\n/"
            yield from comment_parts(text[position:end], "comment" if is_attached else "text")
            position = end + 1
        elif text[position] == "\n":
            position += 1
        else:
            end = text.find("\n/*", position)
            end = len(text) if end < 0 else end
            blank = re.compile(r"\n\n").search(text, position, end)
            if blank and text.count("{", position, blank.start()) == text.count(
                "}", position, blank.start()
            ):
                end = blank.start()
            yield Part("code", text[position:end].strip("\n"))
            position = end + 1


def comment_parts(comment, kind):
    title = SECTION.match(comment)
    if title:
        yield Part("title", title["title"])
        comment = "/* " + comment[title.end() :].lstrip("\n *")
    words = without_marks(comment[2:-2].strip()).strip()
    if words:
        yield Part(kind, words)


def functions_of(text):
    """The public functions that a header declares."""
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return [name for name in FUNCTION.findall(code)]


class Header(SphinxDirective):
    required_arguments = 1

    def run(self):
        path = pathlib.Path(self.config.simverbs_sources, "include/simverbs", self.arguments[0])
        self.env.note_dependency(str(path))
        made, comment = [], []
        for part in parts_of(path.read_text(encoding="utf-8")):
            if part.kind == "title":
                title = part.text[0].upper() + part.text[1:]
                made.append(nodes.section("", nodes.title("", title), ids=[nodes.make_id(title)]))
                continue
            if part.kind == "comment":
                comment = self.paragraphs(part.text)
                continue
            content = self.paragraphs(part.text)
            if part.kind == "code":
                content = [self.declaration(part.text)]
                content += [nodes.block_quote("", *comment)] if comment else []
                comment = []
            if made and isinstance(made[-1], nodes.section):
                made[-1] += content
            else:
                made += content
        return made

    def declaration(self, code):
        block = nodes.literal_block(code, code, language="c")
        domain = self.env.get_domain("std")
        for name in functions_of(code):
            block["ids"].append(name)
            domain.anonlabels[name] = self.env.docname, name
            domain.labels[name] = self.env.docname, name, f"{name}()"
        return block

    @staticmethod
    def paragraphs(text):
        made = []
        for each in text.split("\n\n"):
            if all(line.startswith("    ") for line in each.split("\n")):  # an example
                code = textwrap.dedent(each)
                made.append(nodes.literal_block(code, code, language="c"))
            else:
                made.append(nodes.paragraph("", " ".join(each.split())))
        return made


def setup(app):
    app.add_directive("header", Header)
    return {"parallel_read_safe": False}
