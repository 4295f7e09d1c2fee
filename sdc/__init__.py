"""Methods of statistical disclosure control. They take arrays or DataFrames and return new values.

No module imports Spark, reads files or prints. Each sub-package is one family of methods:

- ``microaggregation``: numeric and mixed records into clusters of at least k (`microaggregate`,
  `individual_ranking`);
- ``nominal``: nominal records made k-anonymous with small errors in frequency tables (`anonymise`, or in
  two steps `partition` and `aggregate`);
- ``safe``: the method of the German census of 2011 (`safe`);
- ``cta``: tables whose sensitive cells are moved to safe values (`CellTable`, `adjust`).

All families keep the same promises. A call does not change its arguments. The same arguments and seed give
the same result, because searches stop after counted work. A ``time_limit`` in seconds is a safety net only:
if it ends a search, the result has ``stopped_by = "time"``. A result states what was proved: a lower bound is
valid or None, and ``optimal`` means proved. Invalid input raises a subclass of `sdc.errors.SdcError`, whose
message contains no value of a record.
"""

if __name__ == "sdc":  # supports checkouts whose folder has the deprecated name, see microguard.deprecate_sdc
    from importlib import import_module

    import_module("microguard").deprecate_sdc()
