"""The tables of algorithms: one row an algorithm, and the parameters it takes.

A row says what an algorithm can carry and where its code is. The specification is checked against the rows,
and the dispatchers (`microaggregate`, `protect_counts`, `adjust`) call what they name. Reading a row imports
no numeric library: the code is loaded when it is called. To add an algorithm, write its file and its row.
"""
