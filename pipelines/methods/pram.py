"""PRAM on Spark: one aggregation counts the categories, then each record is perturbed separately."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.compat import with_values
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.methods.perturbation import RECORD, Perturbation, Written, uniforms
from microguard.schemas.errors import InputRejected
from microguard.sdc.algorithms.pram import PramParameters
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.perturbation.pram import free_matrix, move, transition_matrix
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Maximum number of categories of a variable, because the size of the matrix is its square.
MOST_CATEGORIES = 2_000
_MOVED = "__moved"


class Pram(Perturbation):
    """Post-randomisation: values of nominal variables change at random to other categories."""

    limits = (
        "Values were changed to other categories at random, by transition probabilities. In tables of "
        "several variables, the variables are less dependent than in the original records, and single "
        "records may be impossible.",
    )

    def perturb(
        self, keyed: DataFrame, screened: ValidatedInput, secret: bytes, written: Written
    ) -> DataFrame:
        """Change the values of each quasi-identifier by a transition matrix; missing values remain
        missing.
        """
        names = self.specification.quasi_identifiers
        categories = _categories(keyed, names)
        # the draws depend on the matrix, because two releases with equal draws and different matrices would
        # exclude categories
        secret = hmac.digest(secret, repr((self.parameters, categories)).encode(), "sha256")
        matrices = {name: self._matrix(name, counts) for name, counts in categories.items()}
        known = {name: pa.array(list(counts), pa.string()) for name, counts in categories.items()}

        def moved(records: pa.Array, *values: pa.Array) -> pa.Array:
            columns = []
            for name, before in zip(names, values, strict=True):
                codes = pc.index_in(before, value_set=known[name], skip_nulls=True)
                codes = pc.fill_null(codes, -1).to_numpy(zero_copy_only=False)
                after = move(codes, matrices[name], uniforms(records, secret, name))
                columns.append(known[name].take(pa.array(after, mask=after < 0)))
            return pa.StructArray.from_arrays(columns, [f"v{i}" for i in range(len(names))])

        kind = t.StructType([t.StructField(f"v{i}", t.StringType()) for i in range(len(names))])
        texts = [_text(keyed, name) for name in names]
        drawn = with_values(keyed, _MOVED, moved, kind, [f.col(RECORD), *texts])
        places = {name: f"v{i}" for i, name in enumerate(names)}
        return drawn.select(
            *[
                f.coalesce(f.col(_MOVED)[places[name]].cast(drawn.schema[name].dataType), column(name)).alias(
                    name
                )
                if name in places
                else column(name)
                for name in keyed.columns
            ]
        )

    def _matrix(self, name: str, counts: Mapping[str, int]) -> np.ndarray:
        """Return the transition matrix of a variable."""
        parameters = self.parameters
        assert isinstance(parameters, PramParameters)
        given = {
            (one, other): odds for variable, one, other, odds in parameters.transitions if variable == name
        }
        if not given:
            every = np.array(list(counts.values()), np.float64)
            return transition_matrix(every, parameters.stay, invariant=parameters.matrix == "invariant")
        try:
            return free_matrix(list(counts), given)
        except InvalidParameter as error:
            raise InputRejected(
                f"method.parameters.transitions of {name}: expected categories that occur in the file, "
                "found another one. Correct the transition, or remove it."
            ) from error


def _text(frame: DataFrame, name: str) -> Column:
    """Return a value as text; a missing value, or a number that is none, has no text."""
    value = column(name)
    if isinstance(frame.schema[name].dataType, t.FloatType | t.DoubleType):
        value = f.nullif(value, f.lit(float("nan")))
    return value.cast("string")


def _categories(frame: DataFrame, names: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """Count the categories of each variable, sorted by their text."""
    values = [f.struct(f.lit(i).alias("i"), _text(frame, n).alias("v")) for i, n in enumerate(names)]
    each = frame.select(f.explode(f.array(*values)).alias("each")).select("each.i", "each.v")
    counted = each.where(f.col("v").isNotNull()).groupBy("i", "v").count()
    wide = [
        names[row["i"]]
        for row in counted.groupBy("i").count().where(f.col("count") > MOST_CATEGORIES).collect()
    ]
    if wide:
        raise InputRejected(
            f"PRAM: expected at most {MOST_CATEGORIES:,} categories of a variable, found more in "
            f"{', '.join(wide)}. Recode to coarser categories, or choose another role."
        )
    found: dict[str, dict[str, int]] = {name: {} for name in names}
    for row in sorted(counted.collect(), key=lambda row: (row["i"], row["v"])):
        found[names[row["i"]]][row["v"]] = row["count"]
    return found
