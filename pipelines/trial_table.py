"""Protect the table of a specification on trial, to predict or compare; nothing is published."""

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
    """A table that was protected on trial.

    Attributes
    ----------
    row : MethodOnTable
        What the method costs readers, and what it gives away.
    cells, sensitive : int
    failures : tuple of Failure
        Requirements that the gate would find missed.
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
        That of the job, or with another method.
    purpose : str
        Distinguishes the work folder, which is removed.

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
    """Give the trial a work folder and a folder of evidence, and remove both."""
    name = hashlib.sha256(purpose.encode()).hexdigest()[:32]
    try:
        yield name
    finally:
        job.areas.forget_work(name)
        shutil.rmtree(job.areas.record(name), ignore_errors=True)


def _missed(product: TableProduct[Any], measured: Measured) -> Iterator[Failure]:
    """Yield the requirements that the measures of a trial do not meet; without files nothing is counted."""
    for requirement in product.requirements(measured):
        value = measured.metrics.get(requirement.key)
        if value is not None and not requirement.met(value):
            yield requirement.failure(float(value), metric_in_words(requirement.key))
