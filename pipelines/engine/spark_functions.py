"""Cache of Spark's Java functions, so that each is looked up only once.

pyspark asks Java for the class of functions and for its member at every call (`f.col`, `f.sum`), and then
calls it: three messages. A small release builds a thousand such expressions, and 2,000 of its 6,100 messages
were look-ups whose result cannot change while Java runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from pyspark.sql import functions as f

#: Attribute of pyspark's Java view in which functions are cached by name; a new Java process has a new view.
_KNOWN = "_functions_of_spark"


def remember_functions() -> None:
    """Replace pyspark's look-up of functions by one that asks Java only once for each name."""
    module: Any = sys.modules[f.col.__module__]
    look_up: Callable[..., Any] | None = getattr(module, "_get_jvm_function", None)
    if look_up is None or hasattr(look_up, "__wrapped__"):
        return

    @wraps(look_up)
    def remembered(name: str, sc: Any) -> Any:
        known = vars(sc._jvm).setdefault(_KNOWN, {})
        if name not in known:
            known[name] = look_up(name, sc)
        return known[name]

    module._get_jvm_function = remembered
