"""The tables of algorithms. Each row describes one algorithm and its parameters.

A row states which variables and efforts an algorithm supports and where its code is. The specification is
checked against the rows. The dispatchers (`microaggregate`, `protect_counts`, `adjust`) call the functions
that the rows name. Reading a row imports no numeric library: the code of an algorithm is loaded when the
algorithm is called. To add an algorithm, write one file with its code and one row.
"""
