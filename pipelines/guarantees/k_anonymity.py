"""k-anonymity: every combination of the quasi-identifiers and the region belongs to at least k units.

Samarati 2001; Sweeney 2002. Records are counted on the published files. If k counts households or units,
these are not published, and only the run can count them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from microguard.pipelines.guarantees.guarantee import Count, Guarantee, promise
from microguard.pipelines.guarantees.record_files import RecordFiles, median_size
from microguard.schemas.requirements.requirement import MetricKey, Requirement

LINKAGE = (
    "k-anonymity holds for the quasi-identifiers named here, together with the region, and for nothing "
    "else. It does not limit linkage by columns that are published unmodified, inference in homogeneous or "
    "dominated clusters, or comparison with another release."
)
NOT_JOINTLY = (
    "Each group of variables is k-anonymous with the region. "
    "The guarantee does not hold for the groups jointly."
)
COUNTED = (
    "k counts {}s: every combination is shared by records of at least k of them. They are not published, "
    "so only the number of records can be verified on these files."
)
CATEGORY, ANY_VALUE = "category", "any_value"
UNITS = ("record", "household", "unit")
"""What k may count."""
SHOWN = (
    "A missing value counts as equal to any value: k counts the records with the same published values, "
    "whatever they contain where this record has none. Anyone who knows all quasi-identifiers of a person "
    "may find that only one record is compatible, because the others have another value there."
)


@dataclass(frozen=True)
class Group:
    """Variables that are protected together as one group.

    Attributes
    ----------
    name : str
    variables, region : tuple of str
        The quasi-identifiers, and the region that no class crosses, if any.
    """

    name: str
    variables: tuple[str, ...]
    region: tuple[str, ...]


@dataclass(frozen=True)
class KAnonymity(Guarantee[RecordFiles]):
    """Promise of k-anonymity for each group of variables.

    Attributes
    ----------
    k : int
    unit : str
        What k counts: ``record``, ``household`` or ``unit``.
    groups : tuple of Group
    jointly : bool
        Whether there is one group of all quasi-identifiers.
    missing : str
        How missing values are counted: `CATEGORY` (a value like any other) or `ANY_VALUE` (at least k records
        match all values that a record shows).
    """

    name = "k-anonymity"
    k: int
    unit: str
    groups: tuple[Group, ...]
    jointly: bool
    missing: str = CATEGORY

    @property
    def statement(self) -> str:
        """Return the promise as a sentence."""
        region = " with the region" if any(group.region for group in self.groups) else ""
        if self.missing == ANY_VALUE:
            return (
                f"Every combination of values of the quasi-identifiers{region} that a record shows is shown "
                f"by at least k = {self.k} records; a missing value matches any value."
            )
        return (
            f"Every combination of the quasi-identifiers{region} is shared by at least k = {self.k} "
            f"{self.unit}s."
        )

    @property
    def limits(self) -> tuple[str, ...]:
        """Return the limits of the guarantee, one sentence each."""
        apart = () if self.jointly else (NOT_JOINTLY,)
        counted = () if self.unit == "record" else (COUNTED.format(self.unit),)
        shown = (SHOWN,) if self.missing == ANY_VALUE else ()
        return (*apart, *counted, *shown, LINKAGE)

    def requirements(self) -> tuple[Requirement, ...]:
        """Return the requirement of at least k records in the smallest class, or of k records compatible with
        each record.
        """
        metric = "fewest_showing" if self.missing == ANY_VALUE else "smallest_class"
        return tuple(promise(metric, group.name, at_least=self.k) for group in self.groups)

    def private_requirements(self) -> tuple[Requirement, ...]:
        """Return the requirement of at least k units in each class, if k counts units."""
        if self.unit == "record":
            return ()
        return tuple(promise("fewest_households", group.name, at_least=self.k) for group in self.groups)

    def count(self, files: RecordFiles) -> Count:
        """Count the records of each class in the written files."""
        metrics, facts, details = {}, {}, []
        for group in self.groups:
            sizes, classes = files.class_sizes((*group.variables, *group.region))
            smallest = int(sizes[0]) if len(sizes) else 0
            metrics[MetricKey("smallest_class", group.name)] = float(smallest)
            facts[group.name] = {
                "smallest_class": smallest,
                "median_class": median_size(sizes, classes),
                "classes": int(classes.sum()),
            }
            details.append(
                f"{int(classes.sum())} combinations of {group.name}, the smallest has {smallest} records"
            )
            if self.missing == ANY_VALUE:
                showing = smallest
                if 0 < smallest < self.k:
                    showing = files.fewest_showing(group.variables, group.region, self.k)
                metrics[MetricKey("fewest_showing", group.name)] = float(showing)
                facts[group.name]["fewest_showing"] = showing
                details.append(f"every record is compatible with at least {showing} records")
            if self.unit != "record" and files.private is not None:
                fewest = files.private.fewest_units((*group.variables, *group.region))
                metrics[MetricKey("fewest_households", group.name)] = float(fewest)
        return Count(metrics, facts, f"{'; '.join(details)}; k = {self.k}")

    def manifest(self, count: Count) -> dict[str, Any]:
        """Return the entry ``guarantee`` for the manifest."""
        return {
            "guarantee": {
                "k": self.k,
                "unit": self.unit,
                "groups": [
                    {
                        "name": group.name,
                        "variables": list(group.variables),
                        "with_region": list(group.region),
                        **count.facts[group.name],
                    }
                    for group in self.groups
                ],
                "jointly": self.jointly,
                **({} if self.missing == CATEGORY else {"missing": self.missing}),
            }
        }

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> KAnonymity:
        """Build the guarantee from the statements of a manifest."""
        stated = manifest["guarantee"]
        groups = tuple(
            Group(str(each["name"]), tuple(each["variables"]), tuple(each["with_region"]))
            for each in stated["groups"]
        )
        return cls(
            int(stated["k"]),
            stated.get("unit", "record"),
            groups,
            stated.get("jointly", len(groups) < 2),
            stated.get("missing", CATEGORY),
        )
