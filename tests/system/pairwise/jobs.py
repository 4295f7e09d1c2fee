"""Build the jobs of the pairwise tests: a row of settings becomes a specification and a small file.

Texts of records begin with `CANARY`, so that a message with a value of a record can be detected.
"""

from __future__ import annotations

import datetime
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from microguard.schemas.methods import EFFORTS, MICROAGGREGATION, SAFE

from tests.pipelines.microdata import content
from tests.system.pairwise.covering import Factors, Row

CANARY = "CANARY"
#: Unique text of each record, by which the tests find it in the release. Only jobs that publish columns
#: without a role have it.
NOTE = "note"
_TWO_STEP = ("own-eee", "own-hhg", "own-ehc")
FACTORS: Factors = {
    "kinds": (
        "numbers",
        "one number",
        "categories",
        "ordinal",
        "bands",
        "hierarchical",
        "costs",
        "number and category",
        "all kinds",
    ),
    "weight": ("none", "whole", "skewed", "not heeded", "two"),
    "identity": ("unit", "none", "household", "unit and household"),
    "counted": ("record", "household", "unit"),
    "diversity": ("none", "published", "two texts", "two numbers"),
    "groups": ("one", "two"),
    "missing": ("none", "kept", "rejected"),
    "series": ("single", "append", "register"),
    "effort": ("fast", *(effort for effort in EFFORTS if effort != "fast")),
    "algorithm": (
        "auto",
        *MICROAGGREGATION,
        *_TWO_STEP,
        "random",
        "chi-exact",
        "SAFE",
        *(f"SAFE {name}" for name in SAFE),
    ),
    "representative": ("auto", "mean", "median", "medoid", "control_tables", "mode"),
    "others": ("note", "none", "all types"),
    "region": ("none", "text", "number", "small"),
    "writer": ("pyarrow", "dictionary", "duckdb", "csv", "several"),
    "publish": ("parquet", "csv", "partitioned", "delta", "iceberg"),
    "k": ("3", "2", "5"),
    "blocks": ("auto", "small"),
    "tables": ("default", "kept", "bounded", "without region"),
    "recodes": ("none", "weighted", "coded"),
}
#: Quasi-identifiers of each kind of file, by name.
_QUASI_IDENTIFIERS: Mapping[str, tuple[str, ...]] = {
    "numbers": ("income", "hours", "rent"),
    "one number": ("income",),
    "categories": ("sex", "status", "branch"),
    "ordinal": ("health", "sex", "branch"),
    "bands": ("age", "sex"),
    "hierarchical": ("place", "sex"),
    "costs": ("trade", "sex"),
    "number and category": ("income", "sex"),
    "all kinds": ("income", "hours", "sex", "health", "age", "place", "trade"),
}
_HEALTH = ("bad", "fair", "good", "best")
_PLACES = ("p1", "p2", "p3", "p4", "p5")
_TRADES = ("t1", "t2", "t3")
_ROLES: Mapping[str, dict[str, Any]] = {
    "income": {"kind": "numeric"},
    "hours": {"kind": "numeric"},
    "rent": {"kind": "numeric"},
    "sex": {"kind": "nominal"},
    "status": {"kind": "nominal"},
    "branch": {"kind": "nominal"},
    "health": {"kind": "ordinal", "order": list(_HEALTH)},
    "age": {"kind": "ordinal", "bands": [0, 18, 40, 65]},
    "place": {"kind": "hierarchical", "hierarchy": "places.csv"},
    "trade": {"kind": "nominal", "costs": "trades.csv"},
}
#: Files to which a specification refers.
_FILES = {
    "places.csv": "code,district,land\n"
    + "".join(f"{p},d{i // 2},l{i // 4}\n" for i, p in enumerate(_PLACES)),
    "trades.csv": "code,t1,t2,t3\nt1,0,1,2\nt2,1,0,3\nt3,2,3,0\n",
}
_NUMERIC = ("income", "hours", "rent")


@dataclass(frozen=True)
class PairwiseJob:
    """One row of the covering array as a job.

    Attributes
    ----------
    row : dict of factor to value
    """

    row: Row

    def __str__(self) -> str:
        plain = {factor: values[0] for factor, values in FACTORS.items()}
        return ", ".join(f"{name}={value}" for name, value in self.row.items() if value != plain[name])

    @property
    def k(self) -> int:
        return int(self.row["k"])

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        return _QUASI_IDENTIFIERS[self.row["kinds"]]

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Return groups of quasi-identifiers that are protected together."""
        names = self.quasi_identifiers
        half = (len(names) + 1) // 2
        return (names,) if self.row["groups"] == "one" else (names[:half], names[half:])

    @property
    def counted(self) -> str | None:
        """Return the column whose distinct values k counts, or None if k counts records."""
        return None if self.row["counted"] == "record" else self.row["counted"]

    @property
    def region(self) -> str | None:
        return None if self.row["region"] == "none" else "region"

    @property
    def diverse(self) -> str | None:
        """Return the sensitive column that must have two values in each class, or None."""
        return {"two texts": "diagnosis", "two numbers": "debt"}.get(self.row["diversity"])

    @cached_property
    def roles(self) -> dict[str, dict[str, Any]]:
        """Return the variables of the specification."""
        row = self.row
        roles: dict[str, dict[str, Any]] = {"name": {"role": "identifier"}}
        roles |= {each: {"role": each} for each in ("unit", "household") if each in row["identity"]}
        if self.region:
            roles["region"] = {"role": "region"}
        roles |= {name: {"role": "quasi_identifier", **_ROLES[name]} for name in self.quasi_identifiers}
        sensitive = {"published": "diagnosis", "two texts": "diagnosis", "two numbers": "debt"}
        if row["diversity"] in sensitive:
            roles[sensitive[row["diversity"]]] = {"role": "sensitive"}
        if row["diversity"] == "two numbers":
            roles["debt"]["kind"] = "numeric"  # without a kind, CSV fields are text
        if row["weight"] != "none":
            roles["weight"] = {"role": "weight"}
        if row["weight"] == "two":
            roles["wave"] = {"role": "weight"}
        others = {"none": (), "note": (NOTE,), "all types": (NOTE, *_ALL_TYPES)}[row["others"]]
        roles |= {name: {"role": "other"} for name in others}
        first = self.quasi_identifiers[0]
        if row["recodes"] == "weighted":
            roles[first]["variable_weight"] = 4.0
        if row["recodes"] == "coded":
            coded = {"missing": [-1], "round_to": 5, "top_code": 4000} if first in _NUMERIC else None
            roles[first] |= coded or {"missing": [999] if first == "age" else ["-"]}
        return roles

    @cached_property
    def content(self) -> dict[str, Any]:
        """Return the specification as parsed TOML."""
        row, k = self.row, self.k
        safe = row["algorithm"].startswith("SAFE")
        method: dict[str, Any] = {
            "name": "safe" if safe else "microaggregation",
            "effort": row["effort"],
            "algorithm": row["algorithm"].removeprefix("SAFE").strip() or "auto",
            "representative": row["representative"],
            "unit": row["counted"],
            "min_diversity": 2 if self.diverse else 1,
            "weighted": row["weight"] != "not heeded",
        }
        if row["weight"] == "two":
            method["weight"] = "weight"
        tables = {"kept": {"kept_dimension": 1}, "bounded": {"max_absolute_error": {"1": 20, "2": 20}}}
        method["control_tables"] = tables.get(row["tables"], {})
        if row["tables"] == "without region":
            method["control_tables"] = {"region_dimension": 0}
        publish: dict[str, Any] = {"path": "lake", "evidence": "evidence", "series": row["series"]}
        if row["publish"] in ("delta", "iceberg"):
            publish["format"] = row["publish"]
        elif row["publish"] == "csv":
            publish["csv"] = True
        elif row["publish"] == "partitioned":
            publish["partition_by"] = "region"
        kept = row["missing"] == "kept"
        sections: dict[str, Any] = {
            "release": {"name": "pairs", "k": k, "seed": 7},
            "input": {"path": "data", "format": "csv" if row["writer"] == "csv" else "parquet"},
            "method": method,
            "missing": {
                "numeric": "own_cluster" if kept else "reject",
                "nominal": "category" if kept else "reject",
                "max_rejected": 0 if row["missing"] == "none" and row["recodes"] != "coded" else 60,
            },
            "blocking": {
                "max_records": 2 * k + 1 if row["blocks"] == "small" else "auto",
                "small_regions": "suppress" if row["region"] == "small" else "fail",
            },
            "publish": publish,
        }
        if row["groups"] == "two":
            named = zip("ab", self.groups, strict=True)
            sections["groups"] = [{"name": name, "variables": list(group)} for name, group in named]
        if row["series"] == "register":
            sections["series"] = {"max_waiting": 1.0, "max_ghosts": 1.0, "max_stale": 1.0}
        return content(self.roles, **sections)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Return 60 records in two regions, and one record in a third region if a small region is tested."""
        frame = _records(self.row)
        return frame[[name for name in self.roles if name in frame]]

    @cached_property
    def nights(self) -> tuple[pd.DataFrame, ...]:
        """Return the inputs of the job: one file, or the files of two updates of a series."""
        if self.row["series"] == "single":
            return (self.frame,)
        if self.row["series"] == "append":
            half = len(self.frame) // 2
            return self.frame.iloc[:half], self.frame.iloc[half:]
        return self.frame.iloc[:48], self.frame.iloc[4:]

    @property
    def accepted(self) -> pd.DataFrame:
        """Return the recoded records of the whole file without rejected and suppressed records."""
        return self.accepted_of(self.frame)

    def accepted_of(self, night: pd.DataFrame) -> pd.DataFrame:
        """Return the recoded records of a file without rejected and suppressed records."""
        frame = night.copy()
        for name in self.quasi_identifiers:
            role = self.roles[name]
            frame[name] = frame[name].where(~frame[name].isin(role.get("missing", [])))
            if "top_code" in role:
                frame[name] = frame[name].clip(upper=role["top_code"])
            if "round_to" in role:
                frame[name] = (frame[name] / role["round_to"]).round() * role["round_to"]
        if self.row["missing"] != "kept":
            frame = frame.dropna(subset=list(self.quasi_identifiers))
        if self.counted != "unit" and "unit" in frame:
            frame = frame[~frame["unit"].duplicated(keep=False)]
        if self.row["region"] == "small":
            frame = frame[frame["region"] != "CANARY island"]
        return frame

    def write(self, folder: Path, frame: pd.DataFrame | None = None) -> None:
        """Write the input and the files of the specification into a folder."""
        frame = self.frame if frame is None else frame
        data = folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        for name, text in _FILES.items():
            (folder / name).write_text(text)
        writer = self.row["writer"]
        if writer == "csv":
            frame.to_csv(data / "0.csv", index=False)
            return
        records = pa.Table.from_pandas(frame, preserve_index=False)
        if writer == "dictionary":
            coded = [
                column.dictionary_encode() if pa.types.is_string(column.type) else column
                for column in records.columns
            ]
            records = pa.table(coded, names=records.column_names)
        if writer == "duckdb":
            place = str(data / "0.parquet").replace("'", "''")
            duckdb.sql(f"COPY (SELECT * FROM records) TO '{place}' (FORMAT parquet)")
            return
        parts = 3 if writer == "several" else 1
        size = -(-len(records) // parts)
        for number in range(parts):
            pq.write_table(records.slice(number * size, size), data / f"{number}.parquet")


_ALL_TYPES = ("whole", "single", "exact", "day", "moment", "flag")


def _records(row: Row) -> pd.DataFrame:
    """Draw the records of a row, which depend only on the row."""
    random = np.random.default_rng(zlib.crc32(repr(sorted(row.items())).encode()))
    n = 60
    place = np.arange(n)
    text = random.integers(0, 1000, n)
    regions = np.array([f"{CANARY} north", f"{CANARY} south"], dtype=object)[place % 2]
    if row["region"] == "small":
        regions[:1] = f"{CANARY} island"
    frame = pd.DataFrame(
        {
            "name": [f"{CANARY} {i}" for i in place],
            "unit": [f"{CANARY}-u{i // (2 if row['counted'] == 'unit' else 1)}" for i in place],
            "household": [f"{CANARY}-h{i // 4 * 2 + i % 2}" for i in place],
            "region": place % 2 + 10 if row["region"] == "number" else regions,
            "income": np.round(random.lognormal(7, 1, n), 2),
            "hours": random.integers(0, 60, n).astype(np.int16),
            "rent": [Decimal(int(each)).scaleb(-1) for each in random.integers(1000, 20000, n)],
            "sex": np.array([f"{CANARY} f", f"{CANARY} m"])[random.integers(0, 2, n)],
            "status": random.integers(1, 4, n).astype(np.int32),
            "branch": np.array([f"{CANARY} {each}" for each in "abcd"])[random.integers(0, 4, n)],
            "health": np.array(_HEALTH)[random.integers(0, 4, n)],
            "age": random.integers(0, 90, n),
            "place": np.array(_PLACES)[random.integers(0, 5, n)],
            "trade": np.array(_TRADES)[random.integers(0, 3, n)],
            "diagnosis": np.array([f"{CANARY} {each}" for each in "wxyz"])[random.integers(0, 4, n)],
            "debt": np.round(random.uniform(100, 9000, n), 2),
            "weight": _weights(row["weight"], random, n),
            "wave": np.where(random.random(n) < 0.2, 0.0, random.uniform(1, 9, n).round(1)),
            NOTE: [f"{CANARY}{i:02d}" for i in random.permutation(n)],
            "whole": text * 10**12,
            "single": random.normal(size=n).astype(np.float32),
            "exact": [Decimal(int(each)).scaleb(-3) for each in text],
            "day": [datetime.date(1990, 1, 1) + datetime.timedelta(days=int(each)) for each in text],
            "moment": (pd.Timestamp("2020-01-01") + pd.to_timedelta(text, unit="s")).as_unit("us"),
            "flag": text % 2 == 0,
        }
    )
    first = _QUASI_IDENTIFIERS[row["kinds"]][0]
    if row["missing"] != "none":
        frame[first] = _without(frame[first], place % 4 < 1 if row["missing"] == "kept" else place % 9 == 5)
    if row["recodes"] == "coded":
        code = -1 if first in _NUMERIC else 999 if first == "age" else "-"
        at = place % 4 == 0 if row["missing"] == "kept" else place == 7
        code = Decimal(code) if first == "rent" else code
        frame[first] = frame[first].mask(at, code)
    return frame


def _without(column: pd.Series, missing: np.ndarray) -> pd.Series:
    whole = column.dtype.kind == "i"
    return (column.astype("Int64") if whole else column).mask(missing)


def _weights(which: str, random: np.random.Generator, n: int) -> np.ndarray:
    return random.lognormal(0, 1, n) if which == "skewed" else random.integers(1, 9, n)
