"""Flow of the data: the verbs of the command line, the steps of a release (`release`), and one package per
stage.

The packages are `engine` (session, files, progress), `gate` (judge and refuse), `intake` (read, count,
accept), `publication` (areas, ledger, staging, publishing), `evidence` (private results and their page),
`measures`, `records` and `tables` (the two products), `series` (updates), `audit` (check a release from
outside), `drafting` (draft a specification for a file) and `synthetic` (demo data). ``README.md`` in this
folder describes them.
"""
