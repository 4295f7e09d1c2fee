"""Object stores that die, or lose their answers, at a chosen operation."""

from __future__ import annotations

import obstore
from obstore.exceptions import GenericError

from tests.pipelines.releases import Killed

OPERATIONS = ("put", "get", "head", "delete", "list", "list_with_delimiter")


class Faulty:
    """Stands in for the library: counts what a run asks of its store, and fails at one operation.

    Parameters
    ----------
    at : int or None
        Number of the operation, from 0.
    fault : {"killed", "answer lost"}
        A process that is killed before the operation asks for nothing more; a store whose answer is lost has
        done what it was asked for, and goes on.
    """

    def __init__(self, at: int | None = None, fault: str = "killed") -> None:
        self.count, self._at, self._fault, self._dead = 0, at, fault, False

    def __getattr__(self, name):
        function = getattr(obstore, name)
        return self._failing(function) if name in OPERATIONS else function

    def _failing(self, function):
        def asked(*arguments, **options):
            number, self.count = self.count, self.count + 1
            self._dead |= number == self._at and self._fault == "killed"
            if self._dead:
                raise Killed
            answer = function(*arguments, **options)
            if number == self._at:
                raise GenericError("no answer")
            return answer

        return asked
