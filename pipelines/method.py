"""Interface of a method: its guarantees and its call. Adapters are in `pipelines.methods`.

A method chooses among the guarantees of `pipelines.guarantees`, whose code counts on the written files. A
method cannot bring its own count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from inspect import isabstract
from typing import TYPE_CHECKING, Any

from microguard.pipelines.guarantees.guarantee import Guarantee
from microguard.pipelines.guarantees.k_anonymity import CATEGORY, KAnonymity
from microguard.pipelines.guarantees.l_diversity import LDiversity
from microguard.pipelines.guarantees.record_files import RecordFiles
from microguard.pipelines.guarantees.registry import is_registered
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.block_reports import BlockReports
from microguard.pipelines.product import Product
from microguard.schemas.method_registry import BUILT_IN, MethodRow, method_row, unusable
from microguard.schemas.specification.model import Specification
from microguard.sdc.algorithms.parameters import Parameters
from pyspark.sql import DataFrame

if TYPE_CHECKING:  # imported only for type checks, because a release of records needs no code of tables
    from microguard.pipelines.guarantees.tables import TableGuarantee


class Method(ABC):  # noqa: B024 (its two kinds have the abstract methods)
    """Method of protection for one specification.

    Attributes
    ----------
    specification : Specification
    parameters : Parameters or None
        Values of ``[method.parameters]`` or ``[table.parameters]``, if the method declares parameters.
    limits : tuple of str
        Statements on the method that every reader must know, in addition to the limits of its guarantees.
    """

    limits: tuple[str, ...] = ()

    def __init__(self, specification: Specification, parameters: Parameters | None = None) -> None:
        self.specification, self.parameters = specification, parameters


class RecordMethod(Method):
    """Method that protects records."""

    @abstractmethod
    def guarantees(self) -> Sequence[Guarantee[RecordFiles]]:
        """Return the guarantees of the release; there is at least one."""

    def accept(self, contract: Contract) -> None:
        """Refuse columns whose type cannot hold the values that the method may give them.

        Raises
        ------
        InputRejected
        """

    @abstractmethod
    def protect(
        self, job: Job, screened: ValidatedInput, frame: DataFrame, release_id: str
    ) -> tuple[DataFrame, Mapping[str, BlockReports]]:
        """Protect the accepted records and return them.

        Parameters
        ----------
        frame : DataFrame
            The records of `screened`, with further columns that must stay with their records.

        Returns
        -------
        frame : DataFrame
            The same columns with protected quasi-identifiers. The frame may be computed several times, and
            always has the same records, for any order and partitioning of the input.
        reports : mapping of clustering to BlockReports
            Reports of the blocks; empty for a method without blocks.

        Raises
        ------
        ProtectionFailed
        """


class TableMethod(Method):
    """Method that protects tables."""

    @abstractmethod
    def guarantee(self) -> TableGuarantee:
        """Return the guarantee of the release."""

    @abstractmethod
    def product(self) -> Product[Any, Any]:
        """Return the product that tabulates, protects and publishes."""


def record_method(specification: Specification) -> RecordMethod:
    """Return the method that ``[method] name`` names.

    Raises
    ------
    SpecificationError
        If the registration cannot be used, or the method has a guarantee that its row does not state, or a
        guarantee that is weaker than the specification requires.
    """
    row = method_row("records", specification.method.name)
    method: RecordMethod = _adapted(row, RecordMethod)(
        specification, specification.method.method_parameters(row)
    )
    guarantees = method.guarantees()
    _require_counted(row, guarantees)
    fault = next(_weaker(guarantees, specification, own_missing=row.name in BUILT_IN), None)
    if fault is not None:
        raise unusable(row.name, fault)
    return method


def _weaker(
    guarantees: Sequence[Guarantee[RecordFiles]], specification: Specification, *, own_missing: bool
) -> Iterator[str]:
    """Yield requirements of the specification that the method's k-anonymity or l-diversity guarantees do not
    include.

    Parameters
    ----------
    own_missing : bool
        Whether a missing value may stand for any value: this is weaker, and built-in methods state it.
    """
    k, unit = specification.release.k, specification.method.unit
    region = [] if specification.region is None else [specification.region]
    for each in guarantees:
        if isinstance(each, KAnonymity):
            if each.k < k or each.unit != unit:
                yield f"a k-anonymity of at least k = {k} {unit}s, found one of k = {each.k} {each.unit}s"
            if each.missing != CATEGORY and not own_missing:
                yield (
                    "a k-anonymity in which a missing value is a category of its own, found one in which "
                    "it equals any value"
                )
        if isinstance(each, KAnonymity | LDiversity):
            for clustering in specification.clusterings:
                wanted = set(clustering.variables)
                if not any(wanted <= set(g.variables) and set(region) <= set(g.region) for g in each.groups):
                    yield (
                        f"a {each.name} of {', '.join([*clustering.variables, *region])} together, found "
                        "one without some of these variables"
                    )


def table_method(specification: Specification) -> TableMethod:
    """Return the method that ``[table] method`` names.

    Raises
    ------
    SpecificationError
        As in `record_method`.
    """
    assert specification.table is not None
    row = method_row("table", specification.table.method)
    method: TableMethod = _adapted(row, TableMethod)(
        specification, specification.table.method_parameters(row)
    )
    guarantee = method.guarantee()
    _require_counted(row, [guarantee])
    if row.name not in BUILT_IN and not guarantee.counts_sensitive:
        raise unusable(row.name, f"a guarantee that counts sensitive cells, found {guarantee.name}")
    return method


def _adapted(row: MethodRow, kind: type) -> Any:
    """Import the adapter of a registry row."""
    module, _, name = row.adapter.partition(":")
    try:
        adapter = getattr(import_module(module), name)
    except Exception as error:
        if row.name in BUILT_IN:
            raise
        raise unusable(row.name, f"an adapter {row.adapter}, found {type(error).__name__}") from error
    if not (isinstance(adapter, type) and issubclass(adapter, kind)) or isabstract(adapter):
        raise unusable(row.name, f"a {kind.__name__} with all its methods at {row.adapter}")
    return adapter


def _require_counted(row: MethodRow, guarantees: Sequence[Guarantee[Any]]) -> None:
    """Refuse a method that has no guarantee, one that its registry row does not list, or one with a count of
    its own.
    """
    if not guarantees:
        raise unusable(row.name, "one guarantee or more, found none")
    for each in guarantees:
        if not is_registered(each):
            raise unusable(row.name, f"a guarantee that microguard defines, found {type(each).__name__}")
        if each.name not in row.guarantees:
            raise unusable(row.name, f"the guarantees that its registry row lists, found {each.name}")
