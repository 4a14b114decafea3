"""Directives of blocks that a test executes: tests/docs/sessions.py reads the same source.

`session` shows commands, each behind "$ ", and their output; `file` shows a file that the commands
of the page find; `not-run` shows commands that no test can execute, and says why in `:reason:`.
"""

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

LANGUAGES = {
    "c": "c", "cpp": "c++", "hpp": "c++", "py": "python", "yaml": "yaml", "yml": "yaml",
    "txt": "cmake", "sh": "bash", "json": "json", "conf": "text",
}


class Session(SphinxDirective):
    has_content = True
    option_spec = {"status": directives.nonnegative_int}

    def run(self):
        text = "\n".join(self.content)
        return [nodes.literal_block(text, text, language="console")]


class NotRun(SphinxDirective):
    has_content = True
    option_spec = {"reason": directives.unchanged_required}

    def run(self):
        if not self.options.get("reason"):
            raise self.error("a block that is not executed says why: :reason:")
        text = "\n".join(self.content)
        return [nodes.literal_block(text, text, language="console")]


class File(SphinxDirective):
    has_content = True
    required_arguments = 1

    def run(self):
        name = self.arguments[0]
        text = "\n".join(self.content)
        language = LANGUAGES[name.rsplit(".", 1)[1]]
        block = nodes.literal_block(text, text, language=language)
        caption = nodes.paragraph("", "", nodes.literal(name, name), nodes.Text(":"))
        return [caption, block]


def setup(app):
    app.add_directive("session", Session)
    app.add_directive("not-run", NotRun)
    app.add_directive("file", File)
    return {"parallel_read_safe": True}
