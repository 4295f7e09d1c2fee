"""The plan, settings and distance scales that a register fixes at its start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.intake.fixed_point import Scale
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.series.generations import Generation
from microguard.pipelines.series.settings import SeriesSettings
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Variable

#: Version of the layout of a generation (`pipelines.series.generations`); other versions are refused.
STATE_LAYOUT = 2


def settings_of(specification: Specification) -> SeriesSettings:
    """Return the settings of a register, with defaults for limits that its specification leaves out."""
    limits = {
        name: value
        for name in ("pool", "max_waiting", "max_ghosts", "max_stale")
        if (value := getattr(specification.series, name)) is not None
    }
    k = specification.release.k
    return SeriesSettings(
        k=k,
        changes=specification.publish.changes,
        diverse=specification.sensitive if specification.method.min_diversity > 1 else (),
        min_diversity=specification.method.min_diversity,
        **({"pool": 2 * k} | limits),
    )


def plan_of(specification: Specification, contract: Contract) -> dict[str, Any]:
    """Return the settings that must not change within a series."""
    return {
        "state": STATE_LAYOUT,
        "k": specification.release.k,
        "variables": {name: each.model_dump(mode="json") for name, each in specification.variables.items()},
        "representative": specification.method.representative,
        "weighted": specification.weight_of_means,
        "missing": specification.missing.model_dump(mode="json"),
        "schema": contract.schema.to_string(show_schema_metadata=False),
    }


def refuse_other_plan(begun: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
    """Refuse to continue a series with a plan other than that with which it began.

    Raises
    ------
    GateRefused
    """
    changed = [name for name, value in plan.items() if _given(name, begun.get(name)) != _given(name, value)]
    if changed:
        raise GateRefused(
            f"The series began with another {', '.join(changed)}. Published classes cannot change: keep the "
            "original setting, or protect all units from scratch by decision (microguard protect --rebase)."
        )


def _given(name: str, value: Any) -> Any:
    """Return a plan without defaults, so that keys of later versions do not count as changes."""
    if name != "variables" or not isinstance(value, Mapping):
        return value
    defaults = {key: field.get_default() for key, field in Variable.model_fields.items()}
    return {
        variable: {key: each for key, each in keys.items() if _plain(each) != _plain(defaults.get(key))}
        for variable, keys in value.items()
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def frozen_scales(
    latest: Generation | None, originals: ValidatedInput, specification: Specification
) -> dict[str, Scale]:
    """Return the means and scales of the numeric variables from the update with which the series began.

    Parameters
    ----------
    latest : Generation or None
        None if this update begins the series.
    """
    if latest is None:
        return dict(originals.scales)
    return {name: Scale(**scale) for name, scale in latest.plan()["scales"].items()}
