"""The keys of scenarios as definition lists, made of the JSON Schema that the program prints."""

from docutils import nodes

QUANTITY = {"ps": "a duration: `500ns`, `1.5ms`, `2s`", "B": "a size: `4096`, `64KiB`, `1MiB`"}


def alternatives(schema):
    return schema.get("anyOf", []) + schema.get("oneOf", [])


def kind_of(schema):
    """The values of a key in words."""
    kinds = [kind_of(each) for each in alternatives(schema)]
    if kinds:
        # A size is a number of bytes or a text with a unit: the second says both.
        sizes = [kind for kind in kinds if kind.startswith("a size")]
        return sizes[0] if sizes else " or ".join(kinds)
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return "a list of operations" if name == "operations" else "an operation"
    pattern = schema.get("pattern", "")
    for unit, words in QUANTITY.items():
        if pattern and f"|{unit}|" in pattern.replace("(", "|"):
            return words
    kind = schema.get("type", "")
    if kind == "integer":
        most = schema.get("maximum")
        least = schema.get("minimum")
        if least is None:
            return "a whole number"
        return f"{least} to {most}" if most is not None else f"a number from {least}"
    if kind == "boolean":
        return "`true` or `false`"
    if kind == "array":
        return f"a list: {kind_of(schema['items'])}"
    if kind == "object":
        return "a mapping"
    return "a word or number" if isinstance(kind, list) else "text"


def keys_of(schema):
    """The mappings inside a value: (prefix of their keys, properties)."""
    if "properties" in schema:
        yield "", schema["properties"]
    inner = schema.get("additionalProperties")
    if isinstance(inner, dict):
        for prefix, properties in keys_of(inner):
            yield f"NAME.{prefix}", properties
    if "items" in schema:
        for prefix, properties in keys_of(schema["items"]):
            yield f"[].{prefix}", properties
    for each in alternatives(schema):
        yield from keys_of(each)


class Writer:
    def __init__(self, item, paragraph):
        self.item, self.paragraph = item, paragraph
        self.written = {}  # properties that stand on the page, to where

    def listed(self, path, schema):
        """One list of all keys inside `schema`, deeper ones as lists in it."""
        made = []
        for prefix, properties in keys_of(schema):
            known = self.written.get(str(properties))
            if known:
                made.append(self.paragraph(f"The keys of {known}."))
                continue
            self.written[str(properties)] = f"`{path}`"
            keys = nodes.definition_list()
            for name, value in properties.items():
                keys += self.key(f"{path}.{prefix}{name}", prefix + name, value)
            made.append(keys)
        return made

    def key(self, path, name, schema):
        said = schema.get("description", "")
        text = said[:1].upper() + said[1:] + ("." if said else "")
        words = f"{text} Values: {kind_of(schema)}." if not list(keys_of(schema)) else text
        content = [self.paragraph(words.strip())] if words else []
        return self.item(name, *content, *self.listed(path, schema))


def sections(schema, item, paragraph):
    """(title, content) of each key at the top of a file, then of the operations."""
    writer = Writer(item, paragraph)
    for name, value in schema["properties"].items():
        said = value["description"]
        content = writer.listed(name, value)
        yield name, [paragraph(said[:1].upper() + said[1:] + "."), *content]
    yield "do", [
        paragraph("The operations of a program, one after another."),
        *writer.listed("do", schema["$defs"]["operation"]),
    ]
