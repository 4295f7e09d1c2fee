from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.cta import CellTable, adjust
from microguard.sdc.errors import InvalidParameter, NotFinite, NotNumeric, SdcError, ShapeMismatch
from microguard.sdc.microaggregation import individual_ranking, microaggregate
from microguard.sdc.nominal import aggregate, anonymise, partition
from microguard.sdc.safe import SafeParams, safe

RECORDS = np.random.default_rng(0).normal(size=(12, 2))
FRAME = pd.DataFrame({"sex": list("fm") * 6, "status": list("swd") * 4})
LABELS = np.repeat(np.arange(4), 3)
CELLS: dict[str, Any] = {
    "values": [2.0, 5.0, 7.0],
    "relations": [[1, 1, -1]],
    "sensitive": [True, False, False],
    "lower_protection": [1.0, 0.0, 0.0],
    "upper_protection": [1.0, 0.0, 0.0],
    "lower_capacity": [2.0, 2.0, 2.0],
    "upper_capacity": [2.0, 2.0, 2.0],
}
CALLS: dict[str, Callable[..., Any]] = {
    "microaggregate": lambda **given: microaggregate(RECORDS, 3, **given),
    "individual_ranking": lambda **given: individual_ranking(RECORDS, 3, **given),
    "partition": lambda **given: partition(FRAME, 3, **given),
    "aggregate": lambda **given: aggregate(FRAME, LABELS, 2, **given),
    "anonymise": lambda **given: anonymise(FRAME, 3, 2, **given),
    "safe": lambda **given: safe(FRAME, 3, 2, **given),
    "adjust": lambda **given: adjust(CellTable(**CELLS), **given),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_every_method_refuses_invalid_seeds_and_algorithms_with_the_same_error(call):
    for seed in (-1, 1.5, True, None, "1", [1]):
        with pytest.raises(InvalidParameter, match="seed"):
            call(seed=seed)
    for name in ("magic", None, ["mdav"], 1):
        with pytest.raises(InvalidParameter, match="algorithm: expected one of "):
            call(algorithm=name)


@pytest.mark.parametrize("name", ["microaggregate", "partition", "anonymise", "adjust"])
def test_methods_refuse_an_unknown_effort(name):
    for effort in ("slow", None, ["fast"]):
        with pytest.raises(InvalidParameter, match="effort: expected one of "):
            CALLS[name](effort=effort)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "individual_ranking"])
def test_methods_refuse_a_time_limit_that_is_not_positive(name):
    for limit in (0, -1, "1", True, [1], float("nan")):
        with pytest.raises(InvalidParameter, match="time_limit"):
            CALLS[name](time_limit=limit)
    CALLS[name](time_limit=10**400)


@pytest.mark.parametrize("name", CALLS)
def test_methods_accept_seeds_of_any_size(name):
    CALLS[name](seed=np.uint64(2**64 - 1))
    CALLS[name](seed=2**70)


@pytest.mark.parametrize("frame", [FRAME.to_numpy(), FRAME["sex"], FRAME.to_dict("list"), None])
def test_nominal_methods_refuse_arguments_that_are_not_a_frame(frame):
    for call in (
        lambda: partition(frame, 3),
        lambda: aggregate(frame, LABELS),
        lambda: anonymise(frame, 3),
        lambda: safe(frame, 3),
    ):
        with pytest.raises(InvalidParameter, match="expected a DataFrame"):
            call()


@pytest.mark.parametrize(
    ("records", "options", "error"),
    [
        ([[1.0, 2.0], [3.0]], {}, ShapeMismatch),
        (np.ma.masked_array(RECORDS, mask=RECORDS > 1.0), {}, NotFinite),
        (RECORDS, {"variable_weights": [10**400, 1]}, NotNumeric),
        (RECORDS, {"variable_weights": [1e308, 1.0]}, InvalidParameter),
        (RECORDS, {"record_weights": [1e300] * 12}, InvalidParameter),
        (RECORDS, {"algorithm": "vmdav", "gain": "0.2"}, InvalidParameter),
    ],
)
def test_microaggregate_refuses_invalid_numbers(records, options, error):
    with pytest.raises(error):
        microaggregate(records, 3, **options)


@pytest.mark.parametrize("bounds", [5, [5], pd.Series({1: 3})])
def test_anonymise_refuses_maximum_errors_that_are_not_a_mapping(bounds):
    with pytest.raises(InvalidParameter, match="max_absolute_error: expected a mapping"):
        anonymise(FRAME, 3, 2, max_absolute_error=bounds)


@pytest.mark.parametrize("parameters", [{}, {"slice": 2}, 1])
def test_safe_refuses_parameters_of_another_type(parameters):
    with pytest.raises(InvalidParameter, match="SafeParams"):
        safe(FRAME, 3, 2, parameters=parameters)


@pytest.mark.parametrize(
    "given",
    [
        {"slice": "3"},
        {"slice": 2.5},
        {"part": None},
        {"stagnation": "0"},
        {"extra_error_from": 5},
        {"extra_error_from": ("a", 1)},
        {"max_nodes": "9"},
        {"max_improvements": True},
    ],
)
def test_safe_params_refuse_invalid_values(given):
    with pytest.raises(InvalidParameter, match=next(iter(given))):
        SafeParams(**given)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ([10**400, 1, 1], NotNumeric),
        ([2 + 1j, 5, 7], NotNumeric),
        (np.zeros(3, "M8[D]"), NotNumeric),
        (["2", "5", "7"], NotNumeric),
        (np.ma.masked_array([2.0, 5.0, 7.0], mask=[True, False, False]), NotFinite),
    ],
)
def test_cell_table_refuses_values_that_are_not_numbers(values, error):
    with pytest.raises(error):
        CellTable(**CELLS | {"values": values})


def test_cell_table_accepts_decimals_and_adjust_refuses_other_types():
    assert CellTable(**CELLS | {"values": [Decimal(2), Decimal(5), Decimal(7)]}).cells == 3
    with pytest.raises(SdcError, match="expected a CellTable"):
        adjust(FRAME)  # type: ignore[arg-type]
