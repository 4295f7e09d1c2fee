"""Tests of derived properties of a specification: computed once, and not part of its identity."""

import pickle
from copy import copy, deepcopy
from pathlib import Path

import pytest
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import build_specification

DERIVED = ("numeric", "nominal", "published", "region", "clusterings", "control_tables", "weight")


def example() -> Specification:
    content = {
        "release": {"name": "a", "k": 3},
        "input": {"path": "in.parquet"},
        "variables": {
            "place": {"role": "region"},
            "sex": {"role": "quasi_identifier", "kind": "nominal"},
            "income": {"role": "quasi_identifier", "kind": "numeric"},
            "illness": {"role": "sensitive"},
        },
        "publish": {"path": "lake", "evidence": "evidence"},
    }
    return build_specification(content, Path("/data"))


def derived(specification: Specification) -> list[object]:
    return [getattr(specification, name) for name in DERIVED]


def test_roles_of_variables_are_computed_once(monkeypatch):
    specification = example()
    first = derived(specification)
    monkeypatch.setattr(Specification, "with_role", lambda *_: pytest.fail("a role is computed again"))

    assert derived(specification) == first


def test_derived_properties_are_excluded_from_equality_dump_and_pickle():
    specification, fresh = example(), example()
    derived(specification)

    assert specification == fresh
    assert specification.model_dump(mode="json") == fresh.model_dump(mode="json")
    assert pickle.dumps(specification) == pickle.dumps(fresh)
    assert derived(pickle.loads(pickle.dumps(specification))) == derived(fresh)


@pytest.mark.parametrize(
    "copied", [copy, deepcopy, Specification.model_copy, lambda each: each.model_copy(deep=True)]
)
def test_copied_specification_computes_its_derived_properties_again(copied):
    specification = example()
    derived(specification)

    assert not copied(specification).__dict__.keys() - Specification.model_fields.keys()
    assert copied(specification).folder == specification.folder


def test_model_copy_with_other_variables_has_their_roles():
    specification = example()
    derived(specification)
    fewer = {name: each for name, each in specification.variables.items() if name != "sex"}

    changed = specification.model_copy(update={"variables": fewer})

    assert (changed.nominal, specification.nominal) == ((), ("sex",))
    assert changed.clusterings[0].variables == ("income",)
