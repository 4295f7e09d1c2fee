"""SAFE as nominal algorithms by name: rows like those of `sdc.nominal.methods`, records kept."""

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


#: The method is fit for whole files; the programs behind it are for blocks.
METHODS: dict[str, Method] = {
    "safe": Method(_safe, parameters=SafeParams, efforts=UNPROVED, whole_file=True),
    "safe-exact": Method(_safe, parameters=SafeParams),
    "modified-safe-exact": Method(_safe, parameters=SafeParams),
}
