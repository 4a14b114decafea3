"""Contexts that pyverbs has open, which a test need not close.

Python destroys objects in an order of its own where they refer to one another, and pyverbs crashes
when a context is closed before what is made on it. Context.close() closes all that is made on it,
in the right order.
"""

from __future__ import annotations

import ctypes
import gc
import sys


def close_contexts() -> None:
    """Closes every pyverbs.device.Context of this process, with all objects on it.

    One that cannot be closed is never destroyed: its device is closed by the library.
    """
    device = sys.modules.get("pyverbs.device")
    if device is None:
        return
    for each in gc.get_objects():
        if issubclass(type(each), device.Context):
            try:
                each.close()
            except Exception:  # of an object on it, which pyverbs then regards as open
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
