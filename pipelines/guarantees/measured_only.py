"""Measured only: the method gives no formal promise, and the release states this.

Perturbation (swapping, PRAM, noise; Hundepool et al. 2012, chapter 3) changes records at random. The
protection is measured in the evidence, and the run refuses a perturbation that left a variable unchanged
(`pipelines.measures.data_changes`). Only the records and the presence of the perturbed variables can be
counted on the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from microguard.pipelines.guarantees.guarantee import Count, Guarantee, promise
from microguard.pipelines.guarantees.record_files import RECORDS, RecordFiles
from microguard.schemas.requirements.requirement import MetricKey, Requirement

NAME = "measured only"
NO_PROMISE = (
    "No formal promise is made: neither k-anonymity nor any other property of the records follows from the "
    "method. Disclosure risk was measured before publication and is in the agency's evidence."
)


@dataclass(frozen=True)
class MeasuredOnly(Guarantee[RecordFiles]):
    """Statement that the release makes no formal promise.

    Attributes
    ----------
    variables : tuple of str
        The perturbed variables.
    """

    name = NAME
    variables: tuple[str, ...]

    @property
    def statement(self) -> str:
        """Return the statement that replaces a promise."""
        names = ", ".join(self.variables)
        return (
            f"Values of {names} were perturbed at random. How many changed was counted before publication; a "
            f"single value may be that of the source. {NO_PROMISE}"
        )

    @property
    def limits(self) -> tuple[str, ...]:
        """Return the properties that are not promised."""
        return (NO_PROMISE,)

    def requirements(self) -> tuple[Requirement, ...]:
        """Require that the perturbed variables are published, in at least one record."""
        return (promise("records_published", at_least=1),)

    def count(self, files: RecordFiles) -> Count:
        """Count the records, and the perturbed variables that are missing in the files."""
        files.keys(self.variables)
        ((records,),) = files.query(f"SELECT count(*) FROM {RECORDS}")
        detail = f"{int(records)} records; no formal promise"
        return Count({MetricKey("records_published"): float(records)}, {}, detail)

    def manifest(self, count: Count) -> dict[str, Any]:
        """Return the entry ``guarantee`` for the manifest."""
        return {"guarantee": {"name": NAME, "statement": self.statement, "variables": list(self.variables)}}

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> MeasuredOnly:
        """Build the guarantee from the statements of a manifest."""
        return cls(tuple(manifest["guarantee"]["variables"]))
