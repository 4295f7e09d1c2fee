"""Tests of types of other programs: each type in each role is published bit for bit or refused by name."""

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.intake.column_types import value_type

from tests.pipelines.microdata import run, specification
from tests.system.foreign_writers.corpus import (
    ALIKE,
    RECORDS,
    columns,
    in_bytes,
    not_published,
    numbers,
    regions,
)
from tests.system.foreign_writers.published import KEY, plain, refused_and_staged, values
from tests.system.foreign_writers.writers import FURTHER, WRITERS

#: Roles that need a separate column; every type is tested in the first three.
ROLES = {
    "": {"role": "other"},
    "_identifier": {"role": "identifier"},
    "_unmentioned": None,
    "_sensitive": {"role": "sensitive"},
    "_nominal": {"role": "quasi_identifier", "kind": "nominal"},
}
#: Types that the quick run also tests in the other roles, because Spark represents their values differently.
TOO = frozenset(f"a_{name}" for name in ("category", "category_of_numbers", "microseconds", "float64"))
OF_NUMBERS = ({"role": "weight"}, {"role": "quasi_identifier", "kind": "numeric"})


def written(writer, folder, spark, region, too):
    """Write the corpus with one program, a column per type and role; return the columns and their roles."""
    table, roles = {KEY: pa.array(range(RECORDS), pa.int64())}, {KEY: {"role": "other"}}
    for name, column in columns().items():
        if name.removeprefix("a_") not in writer.lacks:
            for suffix, role in list(ROLES.items())[: None if name in too else 3]:
                if suffix == "_nominal" and in_bytes(name):
                    continue
                table[name + suffix] = column
                if role is not None:
                    roles[name + suffix] = role
    of_writer = [name for name in numbers() if name.removeprefix("number_") not in writer.lacks]
    for i, name in enumerate(of_writer):
        table[name], roles[name] = numbers()[name], OF_NUMBERS[i % 2]
    table[region], roles[region] = regions()[region], {"role": "region"}
    writer.write(pa.table(table), folder / "data", spark)
    return pa.table(table), roles


def check(name, spark, folder, region, too=TOO):
    """Publish a writer's file, and compare every column with the values of an independent reader."""
    writer = (WRITERS | FURTHER)[name]
    if not writer.installed:
        pytest.skip(f"{writer.needs} is not installed")
    given, roles = written(writer, folder, spark, region, too)
    sections = {"input": {"unmentioned": "drop"}, "method": {"weight": "number_int8"}}
    refused, records, contract = refused_and_staged(spark, folder, roles, **sections)
    found = pq.read_table(folder / "data", partitioning=None, coerce_int96_timestamp_unit="us")
    truth = given if writer.as_given else found
    read = [each for each, role in roles.items() if role["role"] != "identifier"]
    assert refused.keys() == {each for each in read if not_published(found[each].type)}
    published = [each for each in read if each not in refused]
    assert set(records.column_names) == set(published)
    different = [each for each in published if values(records, each) != values(truth, each)]
    assert not different
    retyped = [each for each in published if records[each].type != found[each].type]
    assert not set(retyped) - set(contract.declared)


#: Only with --long: fastparquet also writes INT96, and the files of all programs are read together.
LONG = ("pyarrow, INT96",)


@pytest.mark.spark
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in WRITERS]
)
def test_columns_of_other_programs_are_published_bit_for_bit_or_refused_by_name(name, spark, tmp_path):
    of_writer = [each for each in regions() if each.removeprefix("region_") not in WRITERS[name].lacks]
    region = of_writer[list(WRITERS).index(name) % len(of_writer)]
    check(name, spark, tmp_path, region)


@pytest.mark.spark
def test_files_of_several_programs_are_read_with_one_type_or_refused_by_column(spark, tmp_path):
    writers = [each for name, each in WRITERS.items() if each.installed and not each.as_given]
    lacking = {name for writer in writers for name in writer.lacks}
    given = {name: each for name, each in columns().items() if name.removeprefix("a_") not in lacking}
    (tmp_path / "data").mkdir()
    found = []
    for number, writer in enumerate(writers):
        keys = pa.array(range(number * RECORDS, (number + 1) * RECORDS), pa.int64())
        place = tmp_path / str(number)
        writer.write(pa.table({KEY: keys, **given}), place, spark)
        file = place if place.is_file() else next(place.glob("*.parquet"))
        file.rename(tmp_path / "data" / f"{number}.parquet")
        file = tmp_path / "data" / f"{number}.parquet"
        found.append(pq.read_table(file, coerce_int96_timestamp_unit="us"))
    roles = {KEY: {"role": "other"}, "a_bool": {"role": "quasi_identifier", "kind": "nominal"}}
    roles = {name: {"role": "other"} for name in given} | roles
    refused, records, _ = refused_and_staged(spark, tmp_path, roles)
    for name in roles.keys() - refused.keys():
        assert values(records, name) == [value for table in found for value in values(table, name)], name
    same = {name for name in given if len({str(value_type(table[name].type)) for table in found}) == 1}
    # the type INT96 has no time zone
    zones = {name for name in given if pa.types.is_timestamp(given[name].type)}
    assert not {name for name in same - zones if not not_published(given[name].type)} & refused.keys()
    assert not {"a_category", "a_text", "a_large_text"} & refused.keys()


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("name", WRITERS | FURTHER)
def test_every_type_and_role_of_every_program_is_published_bit_for_bit(name, spark, tmp_path):
    for region in regions():
        if region.removeprefix("region_") not in (WRITERS | FURTHER)[name].lacks:
            (tmp_path / region).mkdir()
            check(name, spark, tmp_path / region, region, TOO if region != "region_bool" else set(columns()))


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("name", WRITERS)
def test_protect_keeps_the_values_of_a_foreign_file_whose_records_are_k_anonymous(name, spark, tmp_path):
    writer = WRITERS[name]
    if not writer.installed:
        pytest.skip(f"{writer.needs} is not installed")
    for kind, column in columns().items():
        if kind.removeprefix("a_") in writer.lacks or not_published(column.type):
            continue
        folder = tmp_path / kind
        folder.mkdir()
        likes = [1.5] * ALIKE + [2.5] * ALIKE
        category = columns()["a_bool"] if in_bytes(kind) else column
        table = {"x": column, "y": column, "z": category, "n": pa.array(likes * (RECORDS // ALIKE // 2))}
        writer.write(pa.table(table), folder / "data", spark)
        found = pq.read_table(folder / "data", partitioning=None, coerce_int96_timestamp_unit="us")
        if not_published(found["x"].type):
            continue
        roles = {
            "x": {"role": "other"},
            "y": {"role": "sensitive"},
            "z": {"role": "quasi_identifier", "kind": "nominal"},
            "n": {"role": "quasi_identifier", "kind": "numeric"},
        }
        accepted = {"accept_dependencies": ["x", "y"]}
        _, areas = run(spark, specification(folder, roles, publish=accepted), ())
        files = sorted((areas.public.release(areas.public.current()) / "microdata").glob("*.parquet"))
        records = pa.concat_tables([pq.read_table(file) for file in files])
        truth = pa.table(table) if writer.as_given else found
        different = [each for each in table if multiset(records[each]) != multiset(truth[each])]
        assert not different, kind


def multiset(column):
    """Return the values of a column in a canonical order."""
    return Counter(map(repr, plain(column)))
