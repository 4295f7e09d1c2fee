"""Tests of frames of other libraries: refusals contain no values."""

import pandas as pd
import polars
import pytest
from microguard.pipelines.intake.frames import arrow_reader
from microguard.schemas.errors import InputRejected

CANARY = "CANARY"
FAULTY = {
    "a lazy polars frame": polars.LazyFrame({"a": [CANARY]}).select(polars.col("a").cast(polars.Int64)),
    "found several types": pd.DataFrame({"a": [CANARY, 1.5]}),
    "an integer beyond 64 bits": pd.DataFrame({"a": [2**70, 1]}, dtype=object),
    "two columns of one name": pd.DataFrame([[CANARY, 1]], columns=["a", "a"]),
}


@pytest.mark.parametrize("name", FAULTY)
def test_arrow_reader_refuses_a_faulty_frame_without_its_values(name):
    with pytest.raises(InputRejected) as caught:
        arrow_reader(FAULTY[name])
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
