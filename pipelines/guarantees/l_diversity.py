"""Distinct l-diversity: every equivalence class has at least l values of each sensitive variable.

The definition is that of Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam (2007). The method forms
diverse clusters. An equivalence class of the published file is a union of clusters, and is therefore diverse,
too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from microguard.pipelines.guarantees.guarantee import Count, Guarantee, promise
from microguard.pipelines.guarantees.k_anonymity import Group, KAnonymity
from microguard.pipelines.guarantees.record_files import RecordFiles
from microguard.schemas.requirements.requirement import MetricKey, Requirement

MINIMALITY = (
    "Clusters contain at least {} different values of each sensitive variable. An attacker who knows the "
    "protected variables of everybody, and the method, can examine which clusters were not formed because "
    "they lacked values. In our own attacks, the odds of the most likely claims rose to two and a half "
    "times those of the shares in the classes."
)

WITHHELD = (
    "Sensitive values of whole classes are missing if new units have too few distinct values, and in about "
    "twice as many other classes by a random draw. These values are withheld; they are not missing answers."
)


@dataclass(frozen=True)
class LDiversity(Guarantee[RecordFiles]):
    """Distinct l-diversity of each group of variables.

    Attributes
    ----------
    least : int
        l, at least 2.
    sensitive : tuple of str
    groups : tuple of Group
    withholds : bool
        Whether classes may be published without any sensitive value, as in a register.
    """

    name = "l-diversity"
    least: int
    sensitive: tuple[str, ...]
    groups: tuple[Group, ...]
    withholds: bool = False

    @property
    def statement(self) -> str:
        """The promise in a sentence."""
        published = ", or none that is published" if self.withholds else ""
        return (
            f"Every class has at least {self.least} different values of each sensitive variable{published}."
        )

    @property
    def limits(self) -> tuple[str, ...]:
        """Limits of the guarantee, one sentence each."""
        minimality = MINIMALITY.format(self.least)
        return (minimality, WITHHELD) if self.withholds else (minimality,)

    def requirements(self) -> tuple[Requirement, ...]:
        """Return the requirement of at least l values of each sensitive variable in each class."""
        return tuple(promise("fewest_values", name, at_least=self.least) for name in self.sensitive)

    def count(self, files: RecordFiles) -> Count:
        """Count the distinct values of each sensitive variable in each class."""
        fewest = {
            name: min(
                files.fewest_values(
                    (*group.variables, *group.region), name, self.sensitive if self.withholds else ()
                )
                for group in self.groups
            )
            for name in self.sensitive
        }
        detail = f"at least {min(fewest.values())} values of each sensitive variable; l = {self.least}"
        return Count({MetricKey("fewest_values", name): float(n) for name, n in fewest.items()}, {}, detail)

    def manifest(self, count: Count) -> dict[str, Any]:
        """Return no entry: ``method.min_diversity`` states l."""
        return {}

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> LDiversity | None:
        """Build the guarantee from a manifest; None if the manifest does not state it."""
        least = int(manifest.get("method", {}).get("min_diversity", 1))
        sensitive = tuple(each["name"] for each in manifest["columns"] if each.get("role") == "sensitive")
        if least < 2 or not sensitive:
            return None
        withholds = manifest.get("series", {}).get("kind") == "register"
        return cls(least, sensitive, KAnonymity.from_manifest(manifest).groups, withholds)
