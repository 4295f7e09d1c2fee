"""Sections of `[method]` with the parameters of one algorithm, which are the dataclasses of
`sdc.algorithms`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any

from microguard.schemas.method_registry import MethodRow
from microguard.schemas.methods import ALGORITHMS, STRATEGIES, rows_taken
from microguard.schemas.specification.faults import Fault, fault, faults_of, moved
from microguard.schemas.specification.section import Section
from microguard.sdc.algorithms.microaggregation import (
    ColumnGenerationParameters,
    GeneticParams,
    KWardParameters,
    ProjectionParameters,
    VmdavParameters,
)
from microguard.sdc.algorithms.nominal import ChiExactParameters, Guidance
from microguard.sdc.algorithms.parameters import Parameters
from microguard.sdc.algorithms.safe import SafeParams
from pydantic import GetCoreSchemaHandler, ValidationError, create_model, model_validator
from pydantic_core import CoreSchema


class _FromTable:
    """Validator that builds a dataclass from a TOML table in a strict section; its values remain strict."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        dataclass: dict[str, Any] = handler.resolve_ref_schema(schema)  # type: ignore[assignment]
        dataclass["strict"] = False
        return schema


def _tuples(content: Any) -> Any:
    """Return the values of a section with all lists, including nested ones, converted to tuples."""
    if isinstance(content, dict):
        return {key: _tuples(value) for key, value in content.items()}
    return tuple(map(_tuples, content)) if isinstance(content, list) else content


class AlgorithmSections(Section):
    """The sections of `[method]` for an algorithm or a family of algorithms; at most one of them may be
    given.
    """

    vmdav: Annotated[VmdavParameters, _FromTable()] | None = None
    """Of vmdav."""
    k_ward: Annotated[KWardParameters, _FromTable()] | None = None
    """Of k-ward and k-ward-projected."""
    projection: Annotated[ProjectionParameters, _FromTable()] | None = None
    """Of projection-pv."""
    column_generation: Annotated[ColumnGenerationParameters, _FromTable()] | None = None
    """Of column-generation below effort exact."""
    genetic: Annotated[GeneticParams, _FromTable()] | None = None
    """Of genetic."""
    two_step: Annotated[Guidance, _FromTable()] | None = None
    """Parameters of an own-... algorithm; by default those of Table 6.5 for the nearest scenario."""
    chi_exact: Annotated[ChiExactParameters, _FromTable()] | None = None
    """Of chi-exact."""
    safe: Annotated[SafeParams, _FromTable()] | None = None
    """Of SAFE."""

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, content: Any) -> Any:
        """Convert lists to tuples, and an empty section to its defaults."""
        if not isinstance(content, dict):
            return content
        sections = AlgorithmSections.model_fields
        return {
            name: _tuples(value) if name in sections else value
            for name, value in content.items()
            if value != {} or name not in sections
        }

    @property
    def sections(self) -> dict[str, Parameters]:
        """Return the given sections by key."""
        given = {name: getattr(self, name) for name in AlgorithmSections.model_fields}
        return {name: section for name, section in given.items() if section is not None}

    @property
    def algorithm_parameters(self) -> Parameters | None:
        """Return the parameters of the algorithm; None if none are given."""
        return next(iter(self.sections.values()), None)


def method_parameters(row: MethodRow, given: dict[str, Any]) -> Parameters | None:
    """Build the parameters that the row of a method declares.

    Raises
    ------
    ValidationError
        If the section does not fit the dataclass that the method registers, or the method has no parameters.
    """
    if row.parameters is None and not given:
        return None
    return _section_of(row).model_validate({"parameters": _tuples(given)}).parameters  # type: ignore[attr-defined]


def method_parameter_faults(row: MethodRow, given: dict[str, Any], section: str) -> list[Fault]:
    """Return the faults of ``[method.parameters]`` or ``[table.parameters]``."""
    if row.parameters is None:
        allowed = f"not applicable with method {row.name}"
        return [fault((section, "parameters"), sorted(given), allowed)] if given else []
    try:
        method_parameters(row, given)
    except ValidationError as error:
        return [moved(each, section) for each in faults_of(error, _section_of(row))]
    return []


def parameters_schema(row: MethodRow) -> dict[str, Any]:
    """Return the JSON schema of the parameters that a method registers."""
    schema = _section_of(row).model_json_schema()
    (definition,) = schema["$defs"].values()
    return dict(definition)


def _section_of(row: MethodRow) -> type[Section]:
    """Return a section with the parameters that a method registers."""
    parameters: Any = row.parameters_type
    return _section_with(parameters)


@cache
def _section_with(parameters: Any) -> type[Section]:
    """Return a section with parameters of a type. Pydantic searches all modules to build one."""
    kind: Any = Annotated[parameters, _FromTable()] if parameters is not None else None
    return create_model("ThirdParty", __base__=Section, parameters=(kind, ...))


def parameter_faults(
    method: str, algorithm: str, effort: str, sections: dict[str, Parameters], nominal: bool
) -> Iterator[Fault]:
    """Return the faults of sections and keys that the algorithm does not support."""
    taken = [row.parameters for row in rows_taken(method, algorithm)]
    for name, section in sections.items():
        shown = ", ".join(key for key, value in vars(section).items() if value != _default(section, key))
        takers = _takers(method, type(section))
        if not takers:
            yield fault(("method", name), shown, f"not applicable with method {method}")
        elif any(each is not type(section) for each in taken):
            allowed = f"not applicable with algorithm {algorithm}, only with {' or '.join(takers)}"
            yield fault(("method", name), shown, allowed)
        elif conflict := section.conflict(algorithm, effort, nominal):
            key, allowed = conflict
            yield fault(("method", name, key), getattr(section, key), allowed)


def _takers(method: str, parameters: type[Parameters]) -> list[str]:
    """Return the names of the algorithms of a method that have these parameters."""
    rows = (row for strategy in STRATEGIES[method] for row in ALGORITHMS[strategy].items())
    names = [name for name, row in rows if row.parameters is parameters]
    return ["own-..."] if parameters is Guidance and names else names


def _default(section: Parameters, key: str) -> Any:
    return type(section).__dataclass_fields__[key].default
