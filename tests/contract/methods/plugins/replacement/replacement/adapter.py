"""PRAM as a method of microguard."""

import hashlib
import hmac

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.guarantees.measured_only import MeasuredOnly
from microguard.pipelines.method import RecordMethod
from pyspark.sql import functions as f

from replacement.transition import perturbed


class Replacement(RecordMethod):
    """Random changes of nominal quasi-identifiers."""

    limits = ("Estimates from these records must be corrected for the transition probabilities.",)

    def guarantees(self):
        """State no formal guarantee."""
        return (MeasuredOnly(self.specification.quasi_identifiers),)

    def protect(self, job, screened, frame, release_id):
        """Perturb each quasi-identifier separately."""
        published = [column(name) for name in self.specification.published]
        record = f.to_json(f.struct(*published), {"ignoreNullFields": "false"})
        changed = {
            name: perturbed(frame, column(name), self.parameters.stay, record, self._key(job, name)).cast(
                frame.schema[name].dataType
            )
            for name in self.specification.quasi_identifiers
        }
        columns = [changed.get(name, column(name)).alias(name) for name in frame.columns]
        return frame.select(*columns), {}

    def _key(self, job, variable):
        return hmac.new(job.areas.key(), f"pram {variable}".encode(), hashlib.sha256).hexdigest()
