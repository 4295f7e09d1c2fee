"""How the data moves: the verbs, the steps of a release in `release`, and a room for each stage.

`engine` (session, files, progress), `gate` (judge and refuse), `intake` (read, count, accept), `publication`
(areas, ledger, staging, publishing), `evidence` (what the agency keeps, and its page), `measures`, `records`
and `tables` (the two products), `series` (what an update follows), `audit` (a release from outside),
`drafting` (a foreign file) and `synthetic` (the demo). ``README.md`` in this folder is the map.
"""
