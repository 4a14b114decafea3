"""Keeps the verbs objects of an answer until the answer closes them. Python runs this file before
an answer in `simverbs lab check`. pyverbs closes an object when Python throws it away, at the end
of a function or of the program, so that an answer that closes nothing would leave nothing open."""

import ctypes
import importlib.abc
import importlib.machinery
import sys

KEPT = {
    "pyverbs.addr": ("AH",),
    "pyverbs.cq": ("CompChannel", "CQ"),
    "pyverbs.device": ("Context",),
    "pyverbs.mr": ("MR",),
    "pyverbs.pd": ("PD",),
    "pyverbs.qp": ("QP",),
    "pyverbs.srq": ("SRQ",),
}


def keeping(original):
    """The class that answers see: it makes objects of the original one, each with one more
    reference, which nobody drops."""

    class Keeping(type):
        def __call__(cls, *arguments, **named):
            make = original if cls is shown else super().__call__
            made = make(*arguments, **named)
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
            return made

        def __instancecheck__(cls, instance):
            looks = original if cls is shown else cls
            return looks in type(instance).__mro__

    shown = Keeping(original.__name__, (original,), {"__module__": original.__module__})
    return shown


class Loader(importlib.abc.Loader):
    """Loads a module of pyverbs while all others have their original classes, which its C code
    needs."""

    classes = {}  # (module, name): the original class and the one that answers see
    depth = 0

    def __init__(self, loader):
        self.loader = loader

    @classmethod
    def show(cls, which):
        for (module, name), pair in cls.classes.items():
            setattr(sys.modules[module], name, pair[which])

    def create_module(self, spec):
        self.show(0)
        return self.loader.create_module(spec)

    def exec_module(self, module):
        Loader.depth += 1
        try:
            self.loader.exec_module(module)
            for name in KEPT.get(module.__name__, ()):
                original = getattr(module, name)
                self.classes[module.__name__, name] = (original, keeping(original))
        finally:
            Loader.depth -= 1
            if Loader.depth == 0:
                self.show(1)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if not name.startswith("pyverbs."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:  # else a folder without code
            spec.loader = Loader(spec.loader)
        return spec


sys.meta_path.insert(0, Finder())
