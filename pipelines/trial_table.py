"""Trial protection of the table of a specification, to predict or compare; nothing is published."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from microguard.pipelines.gate.plain_names import metric_in_words
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.measure import Measured, compute_all
from microguard.pipelines.method import table_method
from microguard.pipelines.tables.method_comparison import MethodOnTable, row_of
from microguard.pipelines.tables.table_product import TableProduct
from microguard.schemas.errors import Failure
from microguard.schemas.specification.model import Specification


@dataclass(frozen=True)
class TableTrial:
    """Result of a trial protection of a table.

    Attributes
    ----------
    row : MethodOnTable
        Cost of the method for users, and cells that it discloses.
    cells, sensitive : int
    failures : tuple of Failure
        Requirements that would fail at the gate.
    """

    row: MethodOnTable
    cells: int
    sensitive: int
    failures: tuple[Failure, ...]


def try_table(job: Job, screened: ValidatedInput, specification: Specification, purpose: str) -> TableTrial:
    """Protect a table by its method and judge it.

    Parameters
    ----------
    specification : Specification
        The specification of the job, or the same with another method.
    purpose : str
        Name of the work folder, which is removed afterwards.

    Raises
    ------
    InputRejected, GateRefused, ProtectionFailed
    """
    product = cast(TableProduct[Any], table_method(specification).product())
    product.with_data_defaults(screened)
    with _work(job, purpose) as name:
        protected = product.protect(replace(job, specification=specification), screened, name)
        measured = compute_all(product.measures, product.compare(screened, protected))
    method = product.table.method
    found = {key.metric: value for key, value in measured.metrics.items()}
    original, _ = product.original(protected)
    return TableTrial(
        row_of(method, protected.comparison, found),
        len(original.codes),
        int(original.sensitive.sum()),
        tuple(_missed(product, measured)),
    )


@contextmanager
def _work(job: Job, purpose: str) -> Iterator[str]:
    """Provide a work folder and an evidence folder for the trial, and remove both afterwards."""
    name = hashlib.sha256(purpose.encode()).hexdigest()[:32]
    try:
        yield name
    finally:
        job.areas.forget_work(name)
        shutil.rmtree(job.areas.record(name), ignore_errors=True)


def _missed(product: TableProduct[Any], measured: Measured) -> Iterator[Failure]:
    """Yield the requirements that the measures of a trial do not meet; guarantees are not counted."""
    for requirement in product.requirements(measured):
        value = measured.metrics.get(requirement.key)
        if value is not None and not requirement.met(value):
            yield requirement.failure(float(value), metric_in_words(requirement.key))
