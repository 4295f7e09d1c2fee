"""Stage the columns of a file without protection, and compare them bit for bit with the input."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.read import read
from microguard.pipelines.intake.validate import validate
from microguard.pipelines.method import record_method
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.read_back import verify_written
from microguard.pipelines.publication.stage import stage
from microguard.schemas.errors import InputRejected

from tests.pipelines.microdata import specification

#: Column that distinguishes records with equal values.
KEY = "key"


def staged(spark, spec, folder):
    """Read, validate and stage the records of an input without protection; return them and their contract."""
    microdata = read(spark, spec)
    screened = validate(microdata, spec)
    assert not screened.rejected, screened.rejected
    areas = Areas.from_places(folder / "lake", folder / "evidence")
    frame = microdata.frame.select([column(name) for name in microdata.published])
    with areas.lock():
        release = stage(frame, microdata.contract, {}, areas, "0" * 32, screened.remaining)
        guarantees = record_method(spec).guarantees()
        written = verify_written(spark, release, screened.untouched, frame, spec, guarantees)
    assert written.as_staged
    assert written.as_declared
    assert written.others_as_read
    records = pa.concat_tables([pq.read_table(path) for path in release.microdata])
    return records, microdata.contract


def refused_and_staged(spark, folder, roles, **sections):
    """Remove columns that are refused by name one by one, and return the staged values of the others.

    Every refusal names a column; a column that is refused becomes an identifier.
    """
    refused = {}
    while True:
        given = {name: {"role": "identifier"} if name in refused else role for name, role in roles.items()}
        spec = specification(folder, given, **sections)
        try:
            return refused, *staged(spark, spec, folder)
        except InputRejected as error:
            words = set(re.findall(r"[\w.]+", str(error)))
            named = {name: str(error) for name in roles if name in words and name not in refused}
            if not named:
                raise AssertionError(f"refused without a name: {error}") from error
            refused |= named


def values(table, name):
    """Return values in the order of `KEY` for comparison by bits, except signs of zeros and kinds of NaN."""
    found, keys = plain(table[name]), table[KEY].to_pylist()
    return [found[position] for position in sorted(range(len(keys)), key=keys.__getitem__)]


def plain(column):
    """Return values that are equal if and only if their bits are equal, except for zeros and NaN."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    given = column.cast(kind)
    if pa.types.is_duration(kind):
        return given.cast(pa.int64()).to_pylist()
    if pa.types.is_timestamp(kind):
        nanoseconds = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[kind.unit]
        return [each if each is None else each * nanoseconds for each in given.cast(pa.int64()).to_pylist()]
    if pa.types.is_floating(kind):
        numbers = given.cast(pa.float64()).to_pylist()
        return [each if each is None else (each + 0.0).hex() for each in numbers]
    if pa.types.is_date64(kind):
        given = given.cast(pa.date32())
    return given.to_pylist()
