#!/usr/bin/env bash
# Init script of each machine: install microguard and its requirements by checksum, but not Spark. The folder must
# also contain requirements.txt (of deploy/image) and the wheel (pip wheel --no-deps .).
set -euo pipefail
here=/Volumes/agency/microguard
grep --invert-match '^pyspark==' "$here/requirements.txt" >/tmp/requirements.txt
/databricks/python/bin/pip install --require-hashes --no-deps --requirement /tmp/requirements.txt
/databricks/python/bin/pip install --no-index --no-deps "$here"/microguard-*.whl
