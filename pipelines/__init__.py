"""How the data moves: verbs on this floor, one order that publishes in `run`, and a room for each stage.

`engine` (session, files, progress), `gate` (judge and refuse), `intake` (read, count, accept),
`publication` (areas, ledger, staging, publishing), `evidence` (what the agency keeps, and its page),
`measures` (one object each), `records` and `tables` (the two products), `audit` (the release from outside),
`drafting` and `town` (a foreign file, and the demo's). ``README.md`` beside this file is the map.
"""
