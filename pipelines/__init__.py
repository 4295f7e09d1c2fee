"""Move the data: the verbs, the one order of publication in `run`, and a package for each stage.

`engine` (session, files, progress), `gate` (judge and refuse), `intake` (read, validate, accept),
`publication` (areas, ledger, staging, publishing), `evidence` (private evidence and its page), `measures`
(one class each), `records` and `tables` (the two products), `audit` (audit of public files), `drafting`
(draft of a specification) and `synthetic` (data of the demo). See ``README.md`` in this folder.
"""
