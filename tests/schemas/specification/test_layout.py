"""Tests of `publish.partition_by`: it is the region, and its name must be valid as a folder name."""

from __future__ import annotations

import pytest
from microguard.schemas.errors import SpecificationError

from tests.pipelines.microdata import ROLES, specification


def of_region(name, folder, **more):
    roles = {each: role for each, role in ROLES.items() if each != "region"} | {name: {"role": "region"}}
    return specification(folder, roles | more, publish={"partition_by": name})


@pytest.mark.parametrize("name", ["region", "Region", "gemeente", "région", "lau.2", "nuts-3", "3rd", "a_b"])
def test_partition_by_accepts_the_region(name, tmp_path):
    assert of_region(name, tmp_path).publish.partition_by == name


@pytest.mark.parametrize(
    "name", ["_region", ".region", "re gion", "a=b", "a/b", "a%b", "re\tgion", "r" * 101]
)
def test_a_name_that_readers_take_for_another_is_refused(name, tmp_path):
    with pytest.raises(
        SpecificationError, match="begins with a letter or digit, because folders are named by it"
    ):
        of_region(name, tmp_path)


def test_a_name_that_differs_from_another_in_capitals_alone_is_refused(tmp_path):
    with pytest.raises(SpecificationError, match="ignoring case"):
        of_region("region", tmp_path, Region={"role": "other"})
    of_region("region", tmp_path, Region={"role": "identifier"})


def test_partition_by_is_refused_without_a_region(tmp_path):
    roles = ROLES | {"region": {"role": "other"}}
    with pytest.raises(SpecificationError, match="because no variable has the role region"):
        specification(tmp_path, roles, publish={"partition_by": "region"})


@pytest.mark.parametrize("table", ["delta", "iceberg"])
def test_a_delta_or_iceberg_table_has_no_partition_folders_and_may_have_a_csv(table, tmp_path):
    with pytest.raises(SpecificationError, match=f"if publish.format is {table}"):
        specification(tmp_path, publish={"partition_by": "region", "format": table})
    assert specification(tmp_path, publish={"csv": True, "format": table}).publish.csv


@pytest.mark.parametrize("lake", ["lake #1", "2026%20", "which?/persons"])
def test_folder_path_that_delta_would_misread_is_refused(lake, tmp_path):
    with pytest.raises(SpecificationError, match=r"a folder without #, %, \? in its path"):
        specification(tmp_path, publish={"path": lake, "format": "delta"})
    assert specification(tmp_path, publish={"path": lake, "format": "iceberg"}).publish.path == lake
