"""Tests that a specification accepts exactly the settings that a method supports."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from microguard.schemas.errors import SpecificationError
from microguard.schemas.methods import (
    BY_CONTROL_TABLES,
    EFFORTS,
    FREQUENCY,
    MICROAGGREGATION,
    SAFE,
    Kinds,
    Representative,
    all_algorithms,
)
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import build_specification
from microguard.schemas.specification.sections import Method
from microguard.sdc.algorithms.adjustment import ADJUSTMENT
from microguard.sdc.algorithms.microaggregation import GeneticParams, KWardParameters, VmdavParameters
from microguard.sdc.algorithms.nominal import ChiExactParameters, Guidance
from microguard.sdc.algorithms.safe import SafeParams
from microguard.sdc.clusters.representatives import represent
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.nominal import anonymise
from microguard.sdc.safe import safe
from pydantic import ValidationError

CHI_EXACT_BY_WEIGHT = ChiExactParameters(deviation_weight=2.0)

COLUMNS: dict[Kinds, dict[str, str]] = {
    "numeric": {"x": "numeric", "y": "numeric"},
    "nominal": {"a": "nominal", "b": "nominal"},
    "mixed": {"x": "numeric", "a": "nominal"},
}
RECORDS = 12
K = 3


def build(kinds: Kinds, *, weights: tuple[str, ...] = (), **method: Any) -> Specification:
    variables = {name: {"role": "quasi_identifier", "kind": kind} for name, kind in COLUMNS[kinds].items()}
    variables |= {name: {"role": "weight"} for name in weights}
    content = {
        "release": {"name": "persons", "k": K},
        "input": {"path": "records.parquet"},
        "variables": variables,
        "method": method,
        "publish": {"path": "lake", "evidence": "evidence"},
    }
    return build_specification(content, Path("/nowhere"))


def test_reading_a_specification_imports_no_algorithm_and_no_numeric_library() -> None:
    heavy = ("numpy", "pandas", "pyarrow", "scipy", "numba", "highspy", "pyspark")
    program = (
        "import sys, microguard.schemas.specification.read\n"
        f"found = sorted(set({heavy}) & set(sys.modules))\n"
        "found += [name for name in sys.modules if name.startswith('microguard.sdc.')]\n"
        "print(*found)"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = set(printed.stdout.split())
    assert imported - {"microguard.sdc.errors"} == {
        f"microguard.sdc.{name}"
        for name in (
            "algorithms",
            "algorithms.adjustment",
            "algorithms.algorithm",
            "algorithms.microaggregation",
            "algorithms.nominal",
            "algorithms.parameters",
            "algorithms.safe",
        )
    }


def test_every_registry_row_names_a_function_that_accepts_its_parameters() -> None:
    for table in (MICROAGGREGATION, FREQUENCY, SAFE, ADJUSTMENT):
        for name, row in table.items():
            assert callable(row.solve), name
            if table is MICROAGGREGATION:
                takes = "parameters" in signature(row.solve).parameters
                assert takes == (row.parameters is not None), name


def test_effort_exact_is_refused_if_nothing_is_proved_for_the_whole_file() -> None:
    for name in ("auto", "chi-exact", "local-search", "own-eee"):
        assert build("nominal", algorithm=name, effort="exact")
    for name in ("auto", "safe-exact"):
        assert build("nominal", name="safe", algorithm=name, effort="exact")
    for method, name in (("microaggregation", "random"), ("safe", "safe")):
        with pytest.raises(SpecificationError, match=r"\[method\] effort.*fast, standard, thorough"):
            build("nominal", name=method, algorithm=name, effort="exact")


def test_algorithm_that_ignores_weights_is_refused_if_clusters_are_weighted() -> None:
    for options in ({"algorithm": "column-generation"}, {"effort": "exact"}):
        with pytest.raises(SpecificationError, match=r"weighted by w; or method\.weighted = false"):
            build("numeric", weights=("w",), **options)
        assert build("numeric", weights=("w",), weighted=False, **options)
        assert build("numeric", **options)
    assert build("nominal", weights=("w",), effort="exact")  # counts of key combinations use no weights


def test_specification_must_name_the_used_weight_if_there_are_several() -> None:
    both = build("numeric", weights=("w", "w2"), weight="w2")
    assert (both.weight, both.further_weights) == ("w2", ("w",))
    assert both.weighted_by(both.clusterings[0]) == "w2"
    assert both.weight_of_means == "w2"
    assert build("numeric", weights=("w",), weighted=False).weight_of_means is None
    # counts of key combinations have no means
    assert build("nominal", weights=("w",)).weight_of_means is None
    assert build("numeric", weights=("w",)).weight == "w"
    for weights, options, named in (
        (("w", "w2"), {}, r"\[method\] weight: .*one of w, w2"),
        (("w",), {"weight": "x"}, r"\[method\] weight: .*role weight \(w\)"),
        ((), {"weight": "w"}, "there is none"),
        ((), {"weighted": False}, "no variable has the role weight"),
    ):
        with pytest.raises(SpecificationError, match=named):
            build("numeric", weights=weights, **options)


def test_method_section_of_a_specification_becomes_the_parameters_of_its_algorithm() -> None:
    for kinds, options, expected in (
        ("numeric", {"algorithm": "vmdav", "vmdav": {"gain": 1}}, VmdavParameters(1.0)),
        ("numeric", {"algorithm": "k-ward", "k_ward": {"ranking": "pv"}}, KWardParameters("pv")),
        (
            "nominal",
            {"name": "safe", "safe": {"extra_error_from": [5, 9]}},
            SafeParams(extra_error_from=(5, 9)),
        ),
        ("nominal", {"algorithm": "chi-exact", "chi_exact": {"deviation_weight": 2.0}}, CHI_EXACT_BY_WEIGHT),
        ("nominal", {"algorithm": "own-hhe", "two_step": {"gamma": 0.5, "reward": 1.5}}, Guidance(0.5, 1.5)),
        ("nominal", {"algorithm": "own-hhe", "two_step": {}}, None),
        ("numeric", {"algorithm": "mdav", "vmdav": {}}, None),
    ):
        assert build(kinds, **options).method.algorithm_parameters == expected


def test_identity_of_a_release_contains_only_specified_parameters() -> None:
    given = build("nominal", name="safe", safe={"slice": 2})
    assert given.model_dump(mode="json", exclude_defaults=True)["method"] == {
        "name": "safe",
        "safe": {"slice": 2},
    }
    assert "method" not in build("nominal").model_dump(mode="json", exclude_defaults=True)


def test_limits_of_parameters_are_equal_in_a_specification_and_in_python() -> None:
    for parameters in (VmdavParameters, KWardParameters, GeneticParams, ChiExactParameters, SafeParams):
        for field in fields(parameters):
            for value in (-1, 0, 1, 2, 3, 0.5, 10**12, "x", None, (3, 2), True, float("nan")):
                try:
                    parameters(**{field.name: value})
                    fits = True
                except InvalidParameter:
                    fits = False
                section = next(
                    name
                    for name, each in Method.model_fields.items()
                    if parameters in get_args(get_args(each.annotation)[0])
                )
                try:
                    Method.model_validate({section: {field.name: value}})
                    assert fits, (field.name, value)
                except ValidationError:
                    assert not fits, (field.name, value)


@pytest.mark.parametrize(
    ("method", "named"),
    [
        ({"two_step": {"gamma": 0.5, "reward": 1.0}}, "two_step: .*with algorithm auto"),
        ({"algorithm": "own-eee", "two_step": {"gamma": 2.0, "reward": 1.0}}, "gamma"),
        ({"algorithm": "own-eee", "two_step": {"gamma": 0.5, "reward": 0}}, "reward"),
        ({"chi_exact": {"deviation_weight": 1.0}}, "chi_exact: .*with chi-exact"),
        ({"vmdav": {"gain": 1.1}}, "vmdav: .*with vmdav"),
        ({"genetic": {"population": 3}}, "population"),
        (
            {"algorithm": "k-ward", "representative": "mode", "k_ward": {"ranking": "pv"}},
            "ranking: .*numeric",
        ),
        ({"safe": {"slice": 2}}, "safe: .*with method microaggregation"),
        ({"name": "safe", "safe": {"slice": 5}}, "slice"),
        ({"name": "safe", "safe": {"max_nodes": 5}}, "max_nodes: .*solves no program"),
        ({"name": "safe", "safe": {"extra_error_from": [5, 3]}}, "extra_error_from: .*increase"),
    ],
)
def test_parameters_that_would_be_ignored_are_refused(method: dict[str, Any], named: str) -> None:
    with pytest.raises(SpecificationError, match=named):
        build("nominal", **method)


def run(specification: Specification, kinds: Kinds) -> None:
    """Protect a dozen records as a block of the main job."""
    random = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            name: random.normal(size=RECORDS) if kind == "numeric" else random.choice(list("pq"), RECORDS)
            for name, kind in COLUMNS[kinds].items()
        }
    )
    method = specification.method
    strategy = specification.strategy(specification.clusterings[0])
    if strategy == "safe":
        name = "safe" if method.algorithm == "auto" else method.algorithm
        safe(frame, K, 2, algorithm=name, keep_records=True)
    elif strategy == "frequency":
        anonymise(frame, K, 2, algorithm=method.algorithm, effort=method.effort)
    else:
        nominal = [name for name, kind in COLUMNS[kinds].items() if kind == "nominal"]
        numeric = [name for name in COLUMNS[kinds] if name not in nominal]
        points = frame.assign(**{name: frame[name] == "p" for name in nominal}).astype(float).to_numpy()
        mask = np.array([name in nominal for name in COLUMNS[kinds]])
        clusters = microaggregate(
            points, K, effort=method.effort, algorithm=method.algorithm, nominal=mask if nominal else None
        )
        represent(
            pa.Table.from_pandas(frame),
            clusters.labels,
            numeric=numeric,
            nominal=nominal,
            representative=method.representative,
            points=points,
        )


EVERY = tuple(product(EFFORTS, get_args(Representative)))
#: Pairs that contain each effort and each representative; they take a third of the time of all pairs.
EACH = tuple(pair for pair in EVERY if pair[0] == "standard" or pair[1] == "auto")


@pytest.mark.parametrize(
    "pairs", [EACH, pytest.param(EVERY, marks=pytest.mark.long)], ids=["each pair", "every combination"]
)
@pytest.mark.parametrize("kinds", COLUMNS)
def test_every_accepted_specification_can_be_run(kinds: Kinds, pairs: tuple[tuple[str, str], ...]) -> None:
    accepted = refused = 0
    for method in ("microaggregation", "safe"):
        for algorithm, (effort, representative) in product(all_algorithms(method), pairs):
            options = {"algorithm": algorithm, "effort": effort, "representative": representative}
            try:
                specification = build(kinds, name=method, **options)
            except SpecificationError:
                refused += 1
                continue
            accepted += 1
            strategy = specification.strategy(specification.clusterings[0])
            whole = strategy == "microaggregation" or effort == "standard"
            if (representative == "auto" and whole) or (algorithm == "auto" and effort == "standard"):
                run(specification, kinds)
    assert accepted > 0
    assert refused > 0


def test_modes_and_medoids_need_an_algorithm_that_clusters() -> None:
    for representative in ("mode", "medoid"):
        assert build("nominal", representative=representative, algorithm="mdav")
        with pytest.raises(SpecificationError, match=r"\[method\] algorithm.*needs clusters"):
            build("nominal", representative=representative, algorithm="own-eee")
        with pytest.raises(SpecificationError, match=r"\[method\] effort.*local-search"):
            build("nominal", representative=representative, algorithm="local-search", effort="exact")
    for representative in BY_CONTROL_TABLES:
        with pytest.raises(SpecificationError, match=r"\[method\] algorithm"):
            build("nominal", representative=representative, algorithm="mdav")


@pytest.mark.parametrize("algorithm", ["univariate-optimal", "genetic"])
def test_algorithm_for_one_variable_is_refused_for_two_variables(algorithm: str) -> None:
    with pytest.raises(SpecificationError, match=r"\[method\] algorithm"):
        build("numeric", algorithm=algorithm)


@pytest.mark.parametrize(
    ("method", "named"),
    [
        ({"algorithm": "k-ward-projected", "k_ward": {"ranking": "maximum-distance"}}, "ranking"),
        (
            {
                "algorithm": "column-generation",
                "effort": "exact",
                "column_generation": {"rounding": "simple"},
            },
            "rounding: .*exact",
        ),
        (
            {
                "algorithm": "column-generation",
                "effort": "exact",
                "column_generation": {"pricing": "edge-model"},
            },
            "pricing: .*exact",
        ),
        ({"algorithm": "k-ward", "k_ward": {"variable": "x"}}, "variable: .*unless ranking"),
        (
            {"algorithm": "projection-pv", "projection": {"variable": "c"}},
            "variable: .*a numeric quasi-identifier: ",
        ),
        ({"algorithm": "mdav", "k_ward": {"ranking": "sz"}}, "k_ward: .*with k-ward or k-ward-projected"),
    ],
)
def test_parameters_that_an_algorithm_does_not_support_are_refused(
    method: dict[str, Any], named: str
) -> None:
    with pytest.raises(SpecificationError, match=named):
        build("numeric", **method)


def test_new_algorithm_needs_only_a_row_of_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(0).normal(size=(RECORDS, 2))
    copied = replace(MICROAGGREGATION["vmdav"], efforts=("fast",))
    monkeypatch.setitem(MICROAGGREGATION, "sweep", copied)
    method = build("numeric", algorithm="sweep", effort="fast", vmdav={"gain": 1.1}).method
    found = microaggregate(
        points, K, algorithm="sweep", effort="fast", parameters=method.algorithm_parameters
    )
    same = microaggregate(points, K, algorithm="vmdav", parameters=VmdavParameters(1.1))
    assert (found.labels == same.labels).all()
    with pytest.raises(SpecificationError, match=r"\[method\] effort"):
        build("numeric", algorithm="sweep")
    monkeypatch.setitem(FREQUENCY, "anneal", FREQUENCY["local-search"])
    assert build("nominal", algorithm="anneal")
    anonymise(pd.DataFrame({"a": list("ppqqpq") * 2}), K, 1, algorithm="anneal")
