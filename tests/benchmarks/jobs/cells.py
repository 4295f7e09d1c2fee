"""Random jobs on finished cells: all are published, additive, and adjusted by their rules and statuses.

The cells are sums of records that only this module knows. Dimensions may have coarser codes, in the same
column (`table.parents`, of any depth) or in a separate one. Tables may be linked, and values may be signed,
zero or rounded. Files are Parquet with several types, CSV, or files of tau-ARGUS. One job in six has a fault
that must be refused.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from microguard.schemas.methods import EFFORTS
from pyspark.sql import SparkSession

from tests.benchmarks.jobs.adjusting import (
    adds_up,
    adjusted,
    cells_in_evidence,
    published_tables,
    too_near,
)
from tests.benchmarks.jobs.axis import Axis, drawn_axis
from tests.benchmarks.jobs.columns import EFFORT_SHARES
from tests.benchmarks.jobs.tables import ALGORITHMS, NO_LIMITS

STATUSES = {"safe": "s", "sensitive": "u", "fixed": "p"}
NUMBERS = ("value", "firms", "first", "second", "down", "up", "fall", "rise", "price")
#: Faults of inputs that must be refused.
FAULTS = ("margin missing", "cell twice", "code missing", "value missing", "value infinite", "total wrong")


class CellsJob:
    """One job, drawn from its seed.

    Attributes
    ----------
    cells : DataFrame
        The true table: codes, `value`, `firms`, `first`, `second`, and `status`; values are in units of the
        last published digit.
    content : dict
        The parsed specification.
    wrong : str
        Description of the fault of the input; empty if there is none.
    """

    def __init__(self, seed: int) -> None:
        self._random = random = np.random.default_rng(seed)
        self.total = str(random.choice(["Total", "all", "99"]))
        self._axes = [drawn_axis(random, f"d{i}") for i in range(int(random.choice([1, 2, 2, 3])))]
        names = [axis.name for axis in self._axes]
        linked = len(names) == 3 and random.random() < 0.4
        self.tables = [names[:2], names[1:]] if linked else [names]
        self.digits = int(random.choice([0, 1, 2, 4]))
        self.kind = str(random.choice(["magnitude", "magnitude", "magnitude", "frequency", "rounding"]))
        if self.kind != "magnitude":
            self.digits = 0
        self.cells = self._summed()
        self.wrong = str(random.choice(FAULTS)) if random.random() < 1 / 6 else ""
        self._extra: dict[str, str] = {}
        self._frame = self._as_input()
        self.k = int(random.choice([2, 3, 5]))
        table = {
            "source": "cells",
            "value": "value",
            "tables": self.tables,
            "hierarchies": [axis.columns for axis in self._axes if axis.levels],
            "parents": {axis.name: axis.parents for axis in self._axes if axis.parents and not axis.levels},
            "total": self.total,
            "effort": str(random.choice(EFFORTS, p=EFFORT_SHARES)),
        }
        table |= self._magnitude() if self.kind == "magnitude" else self._counts()
        self.content: dict[str, Any] = {
            "release": {"name": "cells", "k": self.k, "seed": seed},
            "input": {"path": "cells.parquet", "unmentioned": "drop"},
            "table": table,
            "missing": {"max_rejected": int(random.choice([0, 0, 1]))},
            "publish": {"path": "lake", "evidence": "evidence"},
        }
        self._layout = str(random.choice(["parquet", "parquet", "csv", "tau-ARGUS"]))
        levels = any(axis.levels for axis in self._axes)
        if self._layout == "tau-ARGUS" and (
            linked or levels or "lower_capacity" in table
        ):  # tau-ARGUS has no keywords for these
            self._layout = "csv"
        if self._layout != "tau-ARGUS":
            self.content["variables"] = {
                name: {"role": "other"} | ({"kind": "numeric"} if name in NUMBERS else {})
                for name in self._frame
            }

    def publish(self, spark: SparkSession, folder: Path) -> dict[str, Any]:
        """Run the job and return its result."""
        folder.mkdir(parents=True)
        for name, text in self._extra.items():
            (folder / name).write_text(text, encoding="utf-8")
        {"parquet": self._write_parquet, "csv": self._write_csv, "tau-ARGUS": self._write_tau_argus}[
            self._layout
        ](folder)
        return adjusted(spark, self.content, folder)

    def publish_again(self, spark: SparkSession, folder: Path) -> dict[str, Any]:
        """Run a second job on the same file with another name, seed and public area; return its result."""
        content = self.content | {
            "release": self.content["release"] | {"name": "again", "seed": 1_000_000},
            "publish": self.content["publish"] | {"path": "again"},
        }
        return adjusted(spark, content, folder)

    def fault(self, answer: dict[str, Any]) -> str:
        """Return the violated guarantees of a release; empty if there are none."""
        if self.wrong:
            return f"an input with a fault was published: {self.wrong}"
        for frame in published_tables(answer):
            for axis in self._axes:
                if axis.name in frame and not self._adds_up(frame, axis):
                    return f"the totals over {axis.name} are not the sums of their parts"
        near = too_near(answer)
        return f"{near} sensitive cells are nearer than their level" if near else self._moved(answer)

    def _adds_up(self, frame: pd.DataFrame, axis: Axis) -> bool:
        value = str(frame.columns[-1])
        if axis.levels or not axis.parents:
            return adds_up(frame, axis.columns, value, self.total)
        exact = frame.assign(**{value: [Decimal(str(each)) for each in frame[value]]})
        keys = [name for name in frame if name != value]
        above = frame[axis.name].map(axis.parents).fillna(self.total)
        parts = exact.assign(**{axis.name: above})[frame[axis.name] != self.total]
        sums = parts.groupby(keys)[value].agg(lambda each: sum(each, Decimal(0)))
        totals = exact.set_index(keys)[value]
        return bool(totals.reindex(sums.index).equals(sums))

    def _moved(self, answer: dict[str, Any]) -> str:
        """Return whether each cell was drawn, and has the adjustment that its rule or status requires."""
        table = self.content["table"]
        keys = [name for axis in self._axes for name in axis.columns]
        found = cells_in_evidence(answer).rename(columns={f"code_{name}": name for name in keys})
        both = found.merge(self.cells, on=keys, how="outer", suffixes=("_found", ""))
        if self.kind != "magnitude":
            both = both.fillna({"value": 0, "firms": 0, "status": ""})
        if both[["original", "value"]].isna().any(axis=None):
            return "cells are missing, or were not in the input"
        scale = 10.0**self.digits
        original, shown = (both[name] * scale for name in ("original", "published"))
        if "tolerance" not in table and ((original - both["value"]).abs() > 0.5).any():
            return "cells of the evidence are not those of the input"
        change = (shown - original).abs()
        if self.kind == "rounding":
            return "a count is no multiple of the base" if (shown % table["base"] != 0).any() else ""
        if self.kind == "frequency":
            return "a small count is shown" if shown.between(1, self.k - 1).any() else ""
        known = both["status"] if "status" in table or "a_priori" in table else pd.Series("", both.index)
        if (change[known == "fixed"] > 0.5).any() and "fixed" not in table.get("relax", ()):
            return "a fixed cell has moved"
        few = (
            both["firms"].between(1, self.k - 1) & ("contributors" in table) & ~known.isin(["safe", "fixed"])
        )
        if not {"largest", "lower_protection"} & set(table):  # other rules do not change their levels
            few |= known == "sensitive"
        if (change[few] + 1e-6 < 0.2 * original[few].abs()).any():
            return "a cell of few contributors, or one named sensitive, has moved too little"
        return ""

    def _summed(self) -> pd.DataFrame:
        """Generate random records and return all cells of their table, including margins."""
        random, n = self._random, int(self._random.choice([3, 20, 80, 300]))
        amounts = {
            "skewed": random.lognormal(4, 1.5, n),
            "whole": random.integers(0, 100, n).astype(float),
            "zeros": np.where(random.random(n) < 0.5, 0.0, random.lognormal(3, 1, n)),
            "signed": random.normal(0, 100, n),
            "constant": np.full(n, 10.0),
            "losses": -random.lognormal(4, 1, n),
        }
        drawn = amounts[str(random.choice(list(amounts)))] * 10.0**self.digits
        units = np.rint(drawn).astype(np.int64) if self.kind == "magnitude" else np.ones(n, dtype=np.int64)
        codes = [
            random.choice(axis.codes, n, p=random.dirichlet(np.ones(len(axis.codes)))) for axis in self._axes
        ]
        rows = []
        for amount, *finest in zip(units, *codes, strict=True):
            above = [axis.above(str(code), self.total) for axis, code in zip(self._axes, finest, strict=True)]
            rows += [{k: v for each in cell for k, v in each.items()} | {"value": amount}
                     for cell in product(*above)]  # fmt: skip
        keys = [name for axis in self._axes for name in axis.columns]
        grouped = pd.DataFrame(rows).groupby(keys)["value"]
        sizes = grouped.apply(lambda each: sorted(each.abs(), reverse=True))
        cells = grouped.agg(value="sum", firms="count").assign(
            first=[each[0] for each in sizes], second=[each[1] if len(each) > 1 else 0 for each in sizes]
        )
        cells = cells.reset_index()
        inside = np.zeros(len(cells), dtype=bool)
        for dimensions in self.tables:
            others = [axis.name for axis in self._axes if axis.name not in dimensions]
            outside = [name for axis in self._axes if axis.name in others for name in axis.columns]
            inside |= (cells[outside] == self.total).all(axis=1).to_numpy()
        cells = cells[inside].reset_index(drop=True)
        shares = [0.85, 0.05, 0.07, 0.03]
        return cells.assign(status=random.choice(["", "safe", "sensitive", "fixed"], len(cells), p=shares))

    def _as_input(self) -> pd.DataFrame:
        """Return the cells of the input, with amounts as values and possibly a fault that must be refused."""
        random, frame = self._random, self.cells.copy()
        for name in ("value", "first", "second"):
            frame[name] = [Decimal(int(each)).scaleb(-self.digits) for each in frame[name]]
        keys = [name for axis in self._axes for name in axis.columns]
        margins = frame.index[(frame[keys] == self.total).any(axis=1) & (self.cells["value"] != 0)]
        place = int(random.choice(margins)) if len(margins) else -1
        if self.wrong in ("margin missing", "total wrong") and place < 0:
            self.wrong = ""
        if self.wrong == "margin missing":
            frame = frame.drop(index=place)
        elif self.wrong == "total wrong":
            frame.loc[place, "value"] += Decimal(1)
        elif self.wrong == "cell twice":
            frame = pd.concat([frame, frame.iloc[[0]]])
        elif self.wrong == "code missing":
            frame.loc[0, keys[-1]] = None
        elif self.wrong == "value missing":
            frame.loc[self.cells["value"].abs().idxmax(), "value"] = None
        elif self.wrong == "value infinite":
            frame["value"] = frame["value"].astype(float)
            frame.loc[0, "value"] = np.inf
        return frame.sample(frac=1, random_state=1).reset_index(drop=True)

    def _magnitude(self) -> dict[str, Any]:
        """Draw rules and options of a magnitude table."""
        random = self._random
        table: dict[str, Any] = {"decimals": self.digits}
        if random.random() < 0.6:
            table["contributors"] = "firms"
        if random.random() < 0.5:
            table["largest"] = ["first", "second"]
            rule = {"n": int(random.choice([1, 2])), "k": float(random.choice([70, 85]))}
            table |= {"p_percent": 10.0} if random.random() < 0.5 else {"dominance": rule}
        size = self._frame["value"].astype(float).abs().to_numpy()
        if random.random() < 0.2:
            level = np.where(random.random(len(size)) < 0.1, size * random.uniform(0.1, 0.3, len(size)), 0.0)
            self._frame = self._frame.assign(down=level.round(3), up=(level * 1.5).round(3))
            table |= {"lower_protection": "down", "upper_protection": "up"}
        if random.random() < 0.15:
            room = (size * random.uniform(0.5, 2, len(size))).round(self.digits)
            self._frame = self._frame.assign(fall=room, rise=room * 2)
            table |= {"lower_capacity": "fall", "upper_capacity": "rise"}
        if random.random() < 0.15:
            self._frame = self._frame.assign(price=random.uniform(0, 5, len(size)).round(1))
            table["costs"] = "price"
        if random.random() < 0.3:
            table["status"] = "status"
            if random.random() < 0.5:
                self._frame["status"] = self._frame["status"].map(STATUSES | {"": None})
                table["statuses"] = {code: status for status, code in STATUSES.items()}
        elif random.random() < 0.4:
            table["a_priori"] = self._known_before()
        if not {"contributors", "largest", "lower_protection", "status"} & set(table):
            table["contributors"] = "firms"
        options = {
            "mode": "exact",
            "levels": "exact",
            "fixed_margins": True,
            "relax": ["capacities", "fixed"],
            "preserve": {"mean": float(random.choice([0.0, 0.05]))},
            "tolerance": 0.5,
            "algorithm": str(random.choice(ALGORITHMS)),
        }
        table |= {name: value for name, value in options.items() if random.random() < 0.12}
        if "tolerance" in table and self.wrong == "total wrong":
            del table["tolerance"]
        if "tolerance" in table:
            given = self._frame["value"].astype(float)
            shift = random.choice([0.0, 0.1, -0.1], len(given)).round(self.digits)
            self._frame["value"] = (given + shift).round(self.digits)
        return table | ({"quality": NO_LIMITS} if random.random() < 0.6 else {})

    def _counts(self) -> dict[str, Any]:
        table: dict[str, Any] = {"kind": "frequency"}
        if self.kind == "rounding":
            return table | {"method": "rounding", "base": int(self._random.choice([5, 10])),
                            "relax": ["adjacent"]}  # fmt: skip
        if self._random.random() < 0.3:
            table["zeros"] = "omit"
        return table

    def _known_before(self) -> str:
        """Write an a-priori file of single cells in our format or that of tau-ARGUS."""
        known = self.cells[self.cells["status"] != ""]
        keys = [name for axis in self._axes for name in axis.columns]
        if self._random.random() < 0.5:
            self._extra["known.csv"] = known[[*keys, "status"]].to_csv(index=False)
            return "known.csv"
        rows = known.assign(status=known["status"].map(STATUSES))[[*keys, "status"]]
        self._extra["known.hst"] = rows.to_csv(index=False, header=False, sep=";")
        return "known.hst"

    def _write_parquet(self, folder: Path) -> None:
        frame = self._frame
        kind = str(self._random.choice(["decimal", "double", "whole"]))
        if kind == "double" or self.wrong == "value infinite":
            frame = frame.assign(value=frame["value"].astype(float))
        elif kind == "whole" and not self.digits and frame["value"].notna().all():
            frame = frame.assign(value=[int(each) for each in frame["value"]])
        for axis in self._axes:
            numbers = pd.to_numeric(frame[axis.name], errors="coerce")
            if numbers.notna().all():
                frame = frame.assign(**{axis.name: numbers.astype(np.int32)})
        frame.to_parquet(folder / "cells.parquet", index=False)

    def _write_csv(self, folder: Path) -> None:
        self.content["input"] |= {"path": "cells.csv", "format": "csv", "delimiter": ";"}
        if self._random.random() < 0.5:
            self.content["input"]["decimal"] = ","
        frame = self._frame
        if "decimal" in self.content["input"]:
            texts = {name: frame[name].map(lambda each: "" if each is None else str(each).replace(".", ","))
                     for name in NUMBERS if name in frame}  # fmt: skip
            frame = frame.assign(**texts)
        frame.to_csv(folder / "cells.csv", index=False, sep=";")

    def _write_tau_argus(self, folder: Path) -> None:
        table, lines = self.content["table"], ['<SEPARATOR> ";"']
        kinds = {name: f" {keyword}" for name, keyword in self._keywords(table).items()}
        if "status" in table:
            meaning = table.pop("statuses", {status: status for status in STATUSES})
            keyword = {"safe": "<SAFE>", "sensitive": "<UNSAFE>", "fixed": "<PROTECT>"}
            lines += [f"{keyword[status]} {code}" for code, status in meaning.items()]
        for axis in self._axes:
            lines += [axis.name, " <RECODEABLE>", f' <TOTCODE> "{self.total}"']
            if axis.parents:
                lines += [" <HIERARCHICAL>", f' <HIERCODELIST> "{axis.name}.hrc"', ' <HIERLEADSTRING> "@"']
                (folder / f"{axis.name}.hrc").write_text("\n".join(_drawn(axis.parents)) + "\n")
        columns = [axis.name for axis in self._axes]
        for name, keyword in kinds.items():
            lines += [name, keyword]
            columns.append(name)
            if name == "value" and self.kind == "magnitude":
                lines.append(f" <DECIMALS> {self.digits}")
        (folder / "cells.rda").write_text("\n".join(lines) + "\n")
        self._frame[columns].to_csv(folder / "cells.tab", index=False, header=False, sep=";")
        self.content["input"] = {"path": "cells.tab", "metadata": "cells.rda"}
        from_metadata = ("source", "value", "tables", "hierarchies", "parents", "total", "contributors",
                         "largest", "lower_protection", "upper_protection", "status")  # fmt: skip
        self.content["table"] = {name: each for name, each in table.items() if name not in from_metadata}
        if table.get("costs") == "price":
            del self.content["table"]["costs"]

    def _keywords(self, table: dict[str, Any]) -> dict[str, str]:
        """Return the keywords of tau-ARGUS by column."""
        names = {"contributors": "<FREQUENCY>", "lower_protection": "<NUMERIC> <LOWERPL>",
                 "upper_protection": "<NUMERIC> <UPPERPL>", "status": "<STATUS>"}  # fmt: skip
        words = {"value": "<NUMERIC>" if self.kind == "magnitude" else "<FREQUENCY>"}
        words |= {table[key]: keyword for key, keyword in names.items() if key in table}
        words |= dict.fromkeys(table.get("largest", []), "<MAXSCORE>")
        return words | ({"price": "<NUMERIC> <COST>"} if table.get("costs") == "price" else {})


def _drawn(parents: dict[str, str]) -> list[str]:
    """Return the lines of a `.hrc` file."""
    below: dict[str, list[str]] = {}
    for code, parent in parents.items():
        below.setdefault(parent, []).append(code)

    def lines(code: str, depth: int) -> list[str]:
        deeper = [line for each in below.get(code, []) for line in lines(each, depth + 1)]
        return ["@" * depth + code, *deeper]

    return [line for code in below if code not in parents for line in lines(code, 0)]
