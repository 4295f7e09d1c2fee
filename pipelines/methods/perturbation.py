"""Common parts of perturbation methods: a key for each record, draws that depend on it, records written once.

A draw depends on the agency's key and the content of a record, so that neither the order of rows nor
partitions, cores or retries change it. Records with equal content are numbered, so that each has its own
draws. Because such records are interchangeable, every numbering gives the same release.
"""

from __future__ import annotations

import hashlib
import hmac
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.guarantees.guarantee import Guarantee
from microguard.pipelines.guarantees.measured_only import MeasuredOnly
from microguard.pipelines.guarantees.record_files import RecordFiles
from microguard.pipelines.intake.unit_key import keyed_hash
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.block_reports import BlockReports
from microguard.pipelines.measures.pairs import ORIGINAL, with_originals
from microguard.pipelines.method import RecordMethod
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

#: Column with the key of a record (16 bytes).
RECORD = "__record"
Written = Callable[[DataFrame, str], DataFrame]
#: Name of the protected records in the staging area.
_TARGET = "protected"


class Perturbation(RecordMethod):
    """Method that changes quasi-identifiers at random and gives no formal guarantee."""

    def guarantees(self) -> Sequence[Guarantee[RecordFiles]]:
        """Return the statement that there is no formal promise."""
        return (MeasuredOnly(self.specification.quasi_identifiers),)

    @abstractmethod
    def perturb(
        self, keyed: DataFrame, screened: ValidatedInput, secret: bytes, written: Written
    ) -> DataFrame:
        """Return the records with perturbed quasi-identifiers and any additional columns.

        Parameters
        ----------
        keyed : DataFrame
            The records with `RECORD`, which is unique.
        screened : ValidatedInput
            Statistics of the records.
        secret : bytes
            Key of the draws. It is sent with the task and does not appear in a query plan.
        written : callable
            Writes a frame under a name and returns the written frame; for frames that are used several times.
        """

    def protect(
        self, job: Job, screened: ValidatedInput, frame: DataFrame, release_id: str
    ) -> tuple[DataFrame, Mapping[str, BlockReports]]:
        """Perturb the records and write them to files once."""
        place = job.areas.staging_area(release_id, "resume")
        context = f"perturbation {self.specification.method.name}".encode()
        secret = hmac.digest(job.areas.key(), context, "sha256")
        names = [column(name) for name in frame.columns]

        def written(made: DataFrame, name: str) -> DataFrame:
            place.write(made, name, "lz4")
            return place.read(job.spark, name)

        with job.progress.stage("protect"):
            keyed = with_record_key(frame, self.specification.published, secret)
            if ORIGINAL in frame.columns:
                keyed = with_originals(keyed, self.specification, screened.remaining, f.col(RECORD))
            protected = self.perturb(keyed, screened, secret, written)
        with job.progress.stage("reconcile"):
            return written(protected.select(*names), _TARGET).select(*names), {}


def content_and_number(frame: DataFrame, published: Sequence[str]) -> Column:
    """Return the published content of a record as text, and its number among the records with equal
    content.
    """
    content = f.to_json(
        f.struct(*[column(name) for name in published if name in frame.columns]),
        {"ignoreNullFields": "false"},
    )
    number = f.row_number().over(Window.partitionBy(f.sha2(content, 256)).orderBy(f.lit(1)))
    return f.concat(content, f.lit("\x1f"), number)


def with_record_key(frame: DataFrame, published: Sequence[str], secret: bytes) -> DataFrame:
    """Add `RECORD`, a keyed hash of each record's content and number."""
    return frame.withColumn(RECORD, keyed_hash(content_and_number(frame, published), secret))


def uniforms(records: pa.Array, secret: bytes, context: str) -> np.ndarray:
    """Return a number in [0, 1) for each record and context, derived from the key, (n,) multiples of
    2^-53.
    """
    derived = hmac.digest(secret, context.encode(), "sha256")
    digests = b"".join(
        hashlib.blake2b(each, key=derived, digest_size=8).digest() for each in records.to_pylist()
    )
    return (np.frombuffer(digests, ">u8") >> np.uint64(11)) * 2.0**-53
