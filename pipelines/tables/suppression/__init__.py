"""Tables with suppressed cells: contributors, problem, earlier tables of the same records, measures."""
