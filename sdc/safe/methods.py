"""Rows of SAFE in the table of nominal algorithms (`sdc.nominal.methods`), which keep the record count."""

from __future__ import annotations

from microguard.sdc.nominal.methods import UNPROVED, Method, ProtectionTask
from microguard.sdc.nominal.protected_counts import Certificate, ProtectedCounts
from microguard.sdc.safe.parameters import SafeParams
from microguard.sdc.safe.protection import safe_frequencies


def _safe(task: ProtectionTask, name: str) -> ProtectedCounts:
    assert task.parameters is None or isinstance(task.parameters, SafeParams)
    safe = safe_frequencies(
        task.frequencies,
        task.k,
        task.tables,
        algorithm=name,
        parameters=task.parameters,
        keep_records=True,
        deadline=task.deadline,
    )
    proved: tuple[Certificate, ...] = ()
    if safe.objective is not None:
        proved = (Certificate.of(name, "largest error", safe.objective, safe),)
    return ProtectedCounts(safe.counts, safe.stopped_by, certificates=proved)


#: The heuristic can protect whole files; the exact programs are limited to blocks.
METHODS: dict[str, Method] = {
    "safe": Method(_safe, parameters=SafeParams, efforts=UNPROVED, whole_file=True),
    "safe-exact": Method(_safe, parameters=SafeParams),
    "modified-safe-exact": Method(_safe, parameters=SafeParams),
}
