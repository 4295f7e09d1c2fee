"""A specification without faults, that tests change."""

SOUND = """\
[release]
name = "persons"
k = 3
seed = 2026

[input]
path = "persons.parquet"
format = "parquet"

[variables]
person_id = { role = "unit" }
region = { role = "region" }
sex = { role = "quasi_identifier", kind = "nominal" }
education = { role = "quasi_identifier", kind = "nominal" }
income = { role = "quasi_identifier", kind = "numeric" }
diagnosis = { role = "sensitive", kind = "nominal" }
weight = { role = "weight" }
hours = { role = "other" }

[method]
effort = "standard"

[publish]
path = "lake"
evidence = "evidence"
"""
