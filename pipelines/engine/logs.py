"""Python logging of a run: stages and refusals by their names, never by a value of a record.

The logger is ``microguard.run``; handlers and levels of ``microguard`` apply to it. The command sets none.
"""

from __future__ import annotations

import logging

from microguard.schemas.errors import MicroguardError

LOGGER = logging.getLogger("microguard.run")
LOGGER.addHandler(logging.NullHandler())  # without handlers, Python would print errors to standard error


def log_failure(stage: str, error: BaseException) -> None:
    """Log the class of an error and, of a refusal, the keys of what is not met; no message.

    A message may be shown to the person who runs a job, but a log is read by others, too.
    """
    failures = error.failures if isinstance(error, MicroguardError) else ()
    keys = ", ".join(failure.key for failure in failures)
    LOGGER.error("%s failed: %s%s", stage, type(error).__name__, f" ({keys})" if keys else "")
