"""Tests of the registry of methods: built-in rows load their adapters; invalid third-party rows fail."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import get_args

import pytest
from microguard.pipelines.guarantees.registry import GUARANTEES
from microguard.pipelines.method import RecordMethod, TableMethod, record_method, table_method
from microguard.schemas.errors import SpecificationError
from microguard.schemas.method_registry import (
    BUILT_IN,
    GuaranteeName,
    method_names,
    method_row,
    third_party_version,
)
from microguard.schemas.specification.read import build_specification

from tests.contract.methods.installing import install
from tests.pipelines.microdata import NOMINAL, specification

COUNTS = {"kind": "frequency", "tables": [["sex"]], "zeros": "all"}
#: A guarantee that replaces a count of microguard by its own.
OWN = '(type("Own", (MeasuredOnly,), {})(self'
KINDS = {"records": RecordMethod, "table": TableMethod}


def replacement(folder, roles=NOMINAL, **method):
    content = {"release": {"name": "persons", "k": 3}, "input": {"path": "data"}, "variables": roles}
    content |= {
        "publish": {"path": "lake", "evidence": "evidence"},
        "method": {"name": "replacement", **method},
    }
    return build_specification(content, folder)


def test_every_named_guarantee_is_counted_by_microguard():
    assert set(get_args(GuaranteeName)) == set(GUARANTEES)


@pytest.mark.parametrize("row", BUILT_IN.values(), ids=lambda row: row.name)
def test_built_in_row_names_an_adapter_with_all_methods_of_its_kind(row):
    module, _, name = row.adapter.partition(":")
    adapter = getattr(import_module(module), name)
    assert issubclass(adapter, KINDS[row.content])
    assert not inspect.isabstract(adapter)


def test_built_in_method_states_the_guarantees_of_its_row(tmp_path):
    for options, names in (
        ({}, ["k-anonymity"]),
        ({"min_diversity": 2}, ["k-anonymity", "l-diversity"]),
        ({"name": "safe"}, ["k-anonymity"]),
    ):
        method = record_method(specification(tmp_path, NOMINAL, method=options))
        assert [each.name for each in method.guarantees()] == names
    for options, name in (
        ({}, "additive table"),
        ({"method": "rounding", "base": 5}, "rounded table"),
        ({"method": "cell_key"}, "bounded noise"),
        ({"method": "suppression"}, "suppressed table"),
    ):
        roles = NOMINAL | {"sex": {"role": "other"}, "age": {"role": "other"}}
        chosen = specification(tmp_path, roles, table=COUNTS | options, method={"effort": "standard"})
        assert table_method(chosen).guarantee().name == name


def test_method_that_is_not_installed_is_refused_with_the_available_names(tmp_path):
    with pytest.raises(
        SpecificationError, match=r'name: found "replacement", allowed: microaggregation, safe'
    ):
        replacement(tmp_path)
    with pytest.raises(SpecificationError, match="There is no method replacement"):
        method_row("records", "replacement")


def test_parameters_of_a_third_party_method_are_validated_like_built_in_parameters(tmp_path, monkeypatch):
    install("replacement", tmp_path, monkeypatch)
    assert "replacement" in method_names("records")
    assert record_method(replacement(tmp_path, parameters={"stay": 0.5})).parameters.stay == 0.5
    assert record_method(replacement(tmp_path)).parameters.stay == 0.8
    for given, named in (
        ({"parameters": {"stay": 1.5}}, r"\[method\] parameters.stay: found 1.5, allowed: at most 1"),
        ({"parameters": {"sty": 0.5}}, r"\[method\] parameters.sty: unknown key .did you mean .stay"),
        ({"effort": "fast"}, r'\[method\] effort: found "fast", allowed: "standard" with method replacement'),
        ({"min_diversity": 2}, r"\[method\] min_diversity: found 2, allowed: 1 with method replacement"),
        ({"vmdav": {"gain": 0.2}}, r"\[method\] vmdav: .*not applicable with method replacement"),
    ):
        with pytest.raises(SpecificationError, match=named):
            replacement(tmp_path, **given)
    numeric = NOMINAL | {"age": {"role": "quasi_identifier", "kind": "numeric"}}
    with pytest.raises(
        SpecificationError, match=r'found "numeric", allowed: nominal with method replacement'
    ):
        replacement(tmp_path, numeric)
    with pytest.raises(SpecificationError, match=r"\[method\] parameters: .*method microaggregation"):
        specification(tmp_path, NOMINAL, method={"parameters": {"stay": 0.5}})


@pytest.mark.parametrize(
    ("replaced", "refused"),
    [
        ({"__init__": ('("measured only",)', "()")}, "guarantees k-anonymity, .*found none"),
        ({"__init__": ('("measured only",)', '("nothing leaks",)')}, "found nothing leaks"),
        (
            {"__init__": ('"replacement",\n    "records"', '"replacement",\n    "table"')},
            "a method for records, found one for table",
        ),
        (
            {"__init__": ('"replacement",\n    "records"', '"swap",\n    "records"')},
            "a MethodRow of that name",
        ),
        ({"__init__": ('kinds=("nominal",)', 'changes="areas"')}, 'changes = "values", found "areas"'),
        ({"__init__": ("from typing import", "from nowhere import")}, "found ModuleNotFoundError"),
        (
            {"__init__": ("replacement.adapter:Replacement", "replacement.adapter:Other")},
            "adapter replacement.adapter:Other, found AttributeError",
        ),
        ({"adapter": ("def guarantees(self)", "def promises(self)")}, "a RecordMethod with all its methods"),
        (
            {"adapter": ("return (MeasuredOnly", "return () and (MeasuredOnly")},
            "one guarantee or more, found none",
        ),
        ({"adapter": ("(MeasuredOnly(self", OWN)}, "that microguard defines, found Own"),
    ],
)
def test_refusal_of_a_third_party_method_names_its_guarantee_that_microguard_does_not_count(
    tmp_path, monkeypatch, replaced, refused
):
    install("replacement", tmp_path, monkeypatch, **replaced)
    with pytest.raises(
        SpecificationError, match=rf"replacement cannot be used: expected .*{refused}"
    ) as caught:
        record_method(replacement(tmp_path))
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("k", "unit", "variables", "missing", "refused"),
    [
        (2, "record", ("sex", "age"), "category", "at least k = 3 records, found one of k = 2 records"),
        (3, "household", ("sex", "age"), "category", "at least k = 3 records, found one of k = 3 households"),
        (3, "record", ("sex",), "category", "k-anonymity of sex, age, region together"),
        (3, "record", ("sex", "age"), "any_value", "missing value is a category"),
        (4, "record", ("sex", "age"), "category", None),
    ],
)
def test_third_party_method_with_a_weaker_guarantee_than_specified_is_refused(
    tmp_path, monkeypatch, k, unit, variables, missing, refused
):
    promise = (
        "from microguard.pipelines.guarantees.k_anonymity import Group, KAnonymity\n\n"
        f'        group = Group("all", {variables}, ("region",))\n'
        f"        return (KAnonymity({k}, {unit!r}, (group,), True, {missing!r}),)"
    )
    install(
        "replacement",
        tmp_path,
        monkeypatch,
        __init__=('("measured only",)', '("k-anonymity",)'),
        adapter=("return (MeasuredOnly(self.specification.quasi_identifiers),)", promise),
    )
    if refused is None:
        assert [each.name for each in record_method(replacement(tmp_path)).guarantees()] == ["k-anonymity"]
        return
    with pytest.raises(SpecificationError, match=rf"replacement cannot be used: expected .*{refused}"):
        record_method(replacement(tmp_path))


def test_third_party_method_with_noise_of_unlimited_disclosure_is_refused(tmp_path, monkeypatch):
    install(
        "suppression",
        tmp_path,
        monkeypatch,
        __init__=('("suppressed table",)', '("bounded noise",)'),
        adapter=("return SuppressedTable()", "return BoundedNoise(0, 1.0, 1)"),
    )
    path = tmp_path / "project-suppression" / "suppression" / "adapter.py"
    path.write_text(
        "from microguard.pipelines.guarantees.bounded_noise import BoundedNoise\n" + path.read_text()
    )
    roles = NOMINAL | {"sex": {"role": "other"}, "age": {"role": "other"}}
    table = {"kind": "frequency", "tables": [["sex"]], "method": "cell_suppression"}
    chosen = specification(tmp_path, roles, table=table, method={"effort": "standard"})
    with pytest.raises(SpecificationError, match="counts sensitive cells, found bounded noise"):
        table_method(chosen)


def test_third_party_method_has_a_version_and_is_refused_if_two_packages_register_it(tmp_path, monkeypatch):
    install("replacement", tmp_path, monkeypatch)
    assert third_party_version("records", "replacement") == {"replacement": "1.0"}
    assert third_party_version("records", "safe") == {}
    other = tmp_path / "other" / "swap-2.0.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: swap\nVersion: 2.0\n")
    (other / "entry_points.txt").write_text("[microguard.methods]\nreplacement = replacement:METHOD\n")
    monkeypatch.syspath_prepend(str(other.parent))
    with pytest.raises(SpecificationError, match="one package that registers it, found 2"):
        method_row("records", "replacement")
