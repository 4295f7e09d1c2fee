"""Registry of the methods by name: the content that each method protects, its guarantees, and its adapter.

A third party adds a method by an entry point of the group `GROUP`. The entry point has the name of the
method, and its value is a `MethodRow`. The package of the method is imported only when a specification names
the method.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name
from typing import Any, Literal, cast, get_args

from microguard.schemas.errors import SpecificationError
from microguard.sdc.algorithms.parameters import Parameters

GROUP = "microguard.methods"
Content = Literal["records", "table"]
GuaranteeName = Literal[
    "k-anonymity",
    "l-diversity",
    "measured only",
    "additive table",
    "rounded table",
    "no small counts",
    "bounded noise",
    "noise of amounts",
    "suppressed table",
]
"""Names of guarantees in `pipelines.guarantees`, which verify the promises of a method by a count."""


@dataclass(frozen=True)
class MethodRow:
    """Properties of a method.

    Attributes
    ----------
    name : str
        Name of the method in ``[method] name`` or ``[table] method``.
    content : "records" or "table"
    guarantees : tuple of GuaranteeName
        Guarantees that the method may promise, at least one. Code of `pipelines.guarantees` verifies them by
        counts on the written files.
    adapter : str
        Module and class, such as ``"replacement.adapter:Replacement"``: a `RecordMethod` or `TableMethod` of
        `pipelines.method`.
    parameters : type, str or None
        The dataclass of the section ``[method.parameters]`` or ``[table.parameters]``, or its module and
        name, so that a run imports only the parameters of its own method. None if the method has no
        parameters.
    kinds : tuple of str
        Kinds of quasi-identifiers that the method supports.
    keys : tuple of str
        Keys of ``[method]`` or ``[table]`` that this method uses and some other methods do not; "roles.risk"
        for variables of role risk.
    changes : "values", "clusters", "areas" or "coarser"
        How records are changed, in this order: each value is changed separately, records are replaced by
        their clusters, areas are exchanged, or values are suppressed or generalised. This determines the
        measures and limits. Methods of third parties have "values".
    """

    name: str
    content: Content
    guarantees: tuple[GuaranteeName, *tuple[GuaranteeName, ...]]
    adapter: str
    parameters: type[Parameters] | str | None = None
    kinds: tuple[str, ...] = ("nominal", "ordinal", "hierarchical", "numeric")
    keys: tuple[str, ...] = ()
    changes: Literal["values", "clusters", "areas", "coarser"] = "values"

    @property
    def parameters_type(self) -> type[Parameters] | None:
        """Import and return the dataclass of the parameters."""
        given = self.parameters
        return cast(type[Parameters], resolve_name(given)) if isinstance(given, str) else given


_ALGORITHM = ("algorithm", "effort", "weighted")
_SEARCH = ("effort", "quality.max_gap", "quality.min_interval")
_GIVEN = ("capacity", "lower_protection", "upper_protection", "lower_capacity", "upper_capacity")
_CONTRIBUTORS = ("holding", "request", "requests", "waiver", "waived")
_ADJUSTMENT = ("algorithm", "mode", "levels", "spread", "costs", "fixed_margins", *_GIVEN)
_ADAPTERS = "microguard.pipelines.methods"
_PARAMETERS = "microguard.sdc.algorithms"
BUILT_IN: dict[str, MethodRow] = {
    row.name: row
    for row in (
        MethodRow(
            "microaggregation",
            "records",
            ("k-anonymity", "l-diversity"),
            f"{_ADAPTERS}.microaggregation:Microaggregation",
            keys=(*_ALGORITHM, "representative", "unit", "min_diversity"),
            changes="clusters",
        ),
        MethodRow(
            "safe",
            "records",
            ("k-anonymity",),
            f"{_ADAPTERS}.safe:Safe",
            kinds=("nominal",),
            keys=_ALGORITHM,
            changes="clusters",
        ),
        MethodRow(
            "swapping",
            "records",
            ("measured only",),
            f"{_ADAPTERS}.swapping:TargetedRecordSwapping",
            f"{_PARAMETERS}.swapping:SwappingParameters",
            keys=("roles.risk",),
            changes="areas",
        ),
        MethodRow(
            "pram",
            "records",
            ("measured only",),
            f"{_ADAPTERS}.pram:Pram",
            f"{_PARAMETERS}.pram:PramParameters",
            kinds=("nominal", "ordinal", "hierarchical"),
        ),
        MethodRow(
            "rank_swapping",
            "records",
            ("measured only",),
            f"{_ADAPTERS}.rank_swapping:RankSwapping",
            f"{_PARAMETERS}.rank_swapping:RankSwappingParameters",
            kinds=("numeric",),
        ),
        MethodRow(
            "correlated_noise",
            "records",
            ("measured only",),
            f"{_ADAPTERS}.correlated_noise:CorrelatedNoise",
            f"{_PARAMETERS}.correlated_noise:CorrelatedNoiseParameters",
            kinds=("numeric",),
        ),
        MethodRow(
            "local_suppression",
            "records",
            ("k-anonymity",),
            f"{_ADAPTERS}.local_suppression:LocalSuppressionMethod",
            f"{_PARAMETERS}.record_methods:LocalSuppressionParameters",
            kinds=("nominal", "ordinal", "hierarchical"),
            keys=("effort",),
            changes="coarser",
        ),
        MethodRow(
            "recoding",
            "records",
            ("k-anonymity",),
            f"{_ADAPTERS}.recoding:RecodingMethod",
            f"{_PARAMETERS}.record_methods:RecodingParameters",
            kinds=("nominal", "ordinal", "hierarchical"),
            changes="coarser",
        ),
        MethodRow(
            "adjustment",
            "table",
            ("additive table",),
            f"{_ADAPTERS}.adjustment:ControlledTabularAdjustment",
            keys=(*_ADJUSTMENT, *_CONTRIBUTORS, *_SEARCH, "quality.max_grand_total_change", "quality.accept"),
        ),
        MethodRow(
            "rounding",
            "table",
            ("rounded table",),
            f"{_ADAPTERS}.rounding:ControlledRounding",
            keys=("base", *_SEARCH),
        ),
        MethodRow(
            "small_count_rounding",
            "table",
            ("no small counts",),
            f"{_ADAPTERS}.small_count_rounding:SmallCountRounding",
            keys=("base", "quality.min_interval"),
        ),
        MethodRow(
            "cell_key",
            "table",
            ("bounded noise", "noise of amounts"),
            f"{_ADAPTERS}.cell_key:CellKeys",
            keys=(
                "largest_noise",
                "noise_variance",
                "noise_table",
                "small_noise_table",
                "noise_scaling",
                "swapped",
            ),
        ),
        MethodRow(
            "suppression",
            "table",
            ("suppressed table",),
            f"{_ADAPTERS}.suppression:CellSuppression",
            keys=(
                "effort",
                "costs",
                *_GIVEN,
                "sliding_protection",
                "attackers",
                *_CONTRIBUTORS,
                "quality.max_suppressed",
                "quality.max_value_suppressed",
            ),
        ),
    )
}
TABLE_KEYS: tuple[str, ...] = tuple(
    dict.fromkeys(key for row in BUILT_IN.values() if row.content == "table" for key in row.keys)
)
"""Keys of ``[table]`` that only some methods use."""


def method_names(content: Content) -> tuple[str, ...]:
    """Return the method names that a specification may contain; third-party methods are last."""
    names = tuple(name for name, row in BUILT_IN.items() if row.content == content)
    return (*names, *sorted(entry_points(group=GROUP).names - set(BUILT_IN)))


def method_exists(content: Content, name: str) -> bool:
    """Return whether a specification may contain a method of this name.

    The metadata of installed packages, which take 10 ms, are read only if no built-in method has this name.
    """
    row = BUILT_IN.get(name)
    return name in method_names(content) if row is None else row.content == content


def method_row(content: Content, name: str) -> MethodRow:
    """Return the row of a method; the row of a third-party method is loaded first.

    Raises
    ------
    SpecificationError
        If the method does not exist, or its row cannot be used.
    """
    row: Any = BUILT_IN.get(name)
    if row is None:
        try:
            row = _entry_point(content, name).load()
        except SpecificationError:
            raise
        except Exception as error:
            raise unusable(name, f"a module that can be imported, found {type(error).__name__}") from error
    if not isinstance(row, MethodRow) or row.name != name:
        raise unusable(name, f"a MethodRow of that name, found {type(row).__name__}")
    if row.content != content:
        raise unusable(name, f"a method for {content}, found one for {row.content}")
    # a method that may leave all values unchanged would pass every limit
    if name not in BUILT_IN and row.changes != "values":
        raise unusable(name, f'changes = "values", found "{row.changes}"')
    known = get_args(GuaranteeName)
    stated = tuple(row.guarantees)
    if not stated or not set(stated) <= set(known):
        found = ", ".join(map(str, stated)) or "none"
        raise unusable(name, f"one or more of the guarantees {', '.join(known)}, found {found}")
    return row


def unusable(name: str, expected: str) -> SpecificationError:
    """Return the error for a method whose registration is faulty."""
    return SpecificationError(
        f"The method {name} cannot be used: expected {expected}. Nothing may be published under a promise "
        f"that microguard does not verify. Correct the entry point {name} of the group {GROUP}, or choose "
        "another method."
    )


def third_party_version(content: Content, name: str) -> dict[str, str]:
    """Return the package and version of a third-party method; empty for a built-in method."""
    if name in BUILT_IN:
        return {}
    package = _entry_point(content, name).dist
    return {} if package is None else {package.name: package.version}


def _entry_point(content: Content, name: str) -> EntryPoint:
    """Find the unique entry point of a method.

    Raises
    ------
    SpecificationError
    """
    found = list(entry_points(group=GROUP, name=name))
    if not found:
        names = ", ".join(method_names(content))
        raise SpecificationError(f"There is no method {name}: expected one of {names}.")
    if len(found) > 1:
        raise unusable(name, f"one package that registers it, found {len(found)}")
    return found[0]
