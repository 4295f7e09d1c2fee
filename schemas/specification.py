"""The release specification: what `microguard` is told to do, read from TOML and checked once.

`read_specification` gives a checked `Specification` or raises `SpecificationError` with every fault it found;
nobody checks it again downstream. Paths of a specification are relative to the folder it lies in:
`Specification.resolve` gives the absolute ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, ValidationError

from schemas.consistency import inconsistencies
from schemas.errors import SpecificationError
from schemas.faults import Fault, faults_of
from schemas.methods import MAX_RECORDS_BY_ALGORITHM, MAX_RECORDS_BY_EFFORT, Kinds
from schemas.not_built import not_built
from schemas.repair import related, repaired
from schemas.roles import PUBLISHED, PUBLISHED_AS_IT_IS
from schemas.sections import (
    Blocking,
    Group,
    Input,
    Method,
    Missing,
    Publish,
    Quality,
    Release,
    Section,
    Text,
    Variable,
)
from schemas.table import Table
from schemas.toml_text import merged, parsed, parsed_override

WHOLE = "all"
"""Name of the one clustering of a specification without groups."""


class Specification(Section):
    """A release specification, as read."""

    release: Release
    input: Input
    variables: dict[Text, Variable] = Field(min_length=1)
    method: Method = Method()
    blocking: Blocking = Blocking()
    missing: Missing = Missing()
    quality: Quality = Quality()
    publish: Publish
    groups: Annotated[tuple[Group, ...], Field(strict=False)] = ()
    table: Table | None = None

    _folder: Path = PrivateAttr(default_factory=Path.cwd)

    @property
    def folder(self) -> Path:
        """Absolute folder the specification lies in; its paths are relative to it."""
        return self._folder

    def resolve(self, path: str) -> str:
        """Absolute form of a path of the specification; one with a scheme (`s3a://`) stays as it is."""
        return path if "://" in path else os.path.normpath(self._folder / path)

    @property
    def input_path(self) -> str:
        """Absolute input path."""
        return self.resolve(self.input.path)

    @property
    def public_area(self) -> str:
        """Absolute path of the public area."""
        return self.resolve(self.publish.path)

    @property
    def evidence_area(self) -> str:
        """Absolute path of the evidence area."""
        return self.resolve(self.publish.evidence)

    def with_role(self, *roles: str) -> tuple[str, ...]:
        """Names of the variables of these roles, in the order of the specification."""
        return tuple(name for name, variable in self.variables.items() if variable.role in roles)

    def _only(self, role: str) -> str | None:
        names = self.with_role(role)
        return names[0] if names else None

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """Protected variables."""
        return self.with_role("quasi_identifier")

    @property
    def nominal(self) -> tuple[str, ...]:
        """Nominal quasi-identifiers."""
        return tuple(name for name in self.quasi_identifiers if self.variables[name].kind == "nominal")

    @property
    def numeric(self) -> tuple[str, ...]:
        """Numeric quasi-identifiers."""
        return tuple(name for name in self.quasi_identifiers if self.variables[name].kind == "numeric")

    @property
    def sensitive(self) -> tuple[str, ...]:
        """Sensitive variables."""
        return self.with_role("sensitive")

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Identifiers: known by name so that the reader can leave them out."""
        return self.with_role("identifier")

    @property
    def region(self) -> str | None:
        """The region variable, if any."""
        return self._only("region")

    @property
    def household(self) -> str | None:
        """The household variable, if any."""
        return self._only("household")

    @property
    def unit(self) -> str | None:
        """The variable that identifies the statistical unit, if any."""
        return self._only("unit")

    @property
    def counted(self) -> str | None:
        """The variable whose values k counts: the household where `method.unit` says so; None for records."""
        return self.household if self.method.unit == "household" else None

    @property
    def weight(self) -> str | None:
        """The sampling weight, if any."""
        return self._only("weight")

    @property
    def published(self) -> tuple[str, ...]:
        """Columns of the release, in the order of the specification."""
        return self.with_role(*PUBLISHED)

    @property
    def published_as_it_is(self) -> tuple[str, ...]:
        """Published columns that protection does not touch."""
        return self.with_role(*PUBLISHED_AS_IT_IS)

    def kinds(self, variables: tuple[str, ...] | None = None) -> Kinds:
        """Kinds among the given quasi-identifiers (default: all): "nominal", "numeric" or "mixed"."""
        found = {self.variables[name].kind for name in variables or self.quasi_identifiers}
        if found == {"nominal"}:
            return "nominal"
        return "numeric" if found == {"numeric"} else "mixed"

    @property
    def clusterings(self) -> tuple[Group, ...]:
        """What is clustered together: the groups, or one group of all quasi-identifiers."""
        return self.groups or (Group(name=WHOLE, variables=self.quasi_identifiers),)

    @property
    def control_tables(self) -> tuple[tuple[str, ...], ...]:
        """The control tables by name: those listed, or all up to `max_dimension`, never across groups."""
        chosen = self.method.control_tables
        if chosen.tables is not None:
            return chosen.tables
        tables: list[tuple[str, ...]] = []
        for clustering in self.clusterings:
            nominal = [name for name in clustering.variables if name in self.nominal]
            for dimension in range(1, min(chosen.max_dimension or 2, len(nominal)) + 1):
                tables += combinations(nominal, dimension)
        return tuple(tables)

    @property
    def max_block_records(self) -> int:
        """Most records of a block, "auto" resolved by effort and algorithm (and never below 2k)."""
        if self.blocking.max_records != "auto":
            return self.blocking.max_records
        most = MAX_RECORDS_BY_EFFORT[self.method.effort]
        return max(min(most, MAX_RECORDS_BY_ALGORITHM.get(self.method.algorithm, most)), 2 * self.release.k)


def read_specification(path: str | Path, overrides: Iterable[str] = ()) -> Specification:
    """Read and check a release specification.

    Parameters
    ----------
    path : str or Path
        The TOML file; its folder is what the paths in it are relative to.
    overrides : iterable of str
        `section.key=value`, the value as in TOML or a bare word; later ones win.

    Raises
    ------
    SpecificationError
        With every fault of the file and the overrides in one paragraph.
    """
    path = Path(path)
    content = parsed(path)
    for override in overrides:
        content = merged(content, parsed_override(override))
    return build_specification(content, path.absolute().parent, str(path))


def build_specification(content: dict[str, Any], folder: Path, name: str = "specification") -> Specification:
    """Check parsed TOML; `name` is how the report calls it."""
    faults: list[Fault] = []
    in_doubt = False
    try:
        specification = Specification.model_validate(content)
    except ValidationError as error:
        faults = faults_of(error, Specification)
        content, in_doubt = repaired(content, [fault.key for fault in faults])
        specification = Specification.model_validate(content)
    specification._folder = folder
    own = [fault.key for fault in faults]
    between = inconsistencies(specification, in_doubt) + not_built(specification)
    faults += [fault for fault in between if not any(related(fault.key, key) for key in own)]
    if faults:
        raise _report(name, faults)
    return specification


def _report(name: str, faults: list[Fault]) -> SpecificationError:
    texts = tuple(dict.fromkeys(fault.text for fault in faults))
    if len(texts) == 1:
        return SpecificationError(f"The specification {name} is faulty: {texts[0]}.", texts)
    listed = " ".join(f"({number}) {text}." for number, text in enumerate(texts, start=1))
    return SpecificationError(f"The specification {name} has {len(texts)} faults. {listed}", texts)
