"""Entry points: the `microguard` command, and one spark-submit script per verb with the same arguments."""
