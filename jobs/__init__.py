"""The command line: the table of verbs, the handling of a command, and one spark-submit script per verb."""
