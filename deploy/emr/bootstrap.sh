#!/usr/bin/env bash
# Bootstrap action of each machine of an EMR cluster: bootstrap.sh s3://BUCKET/FOLDER. The folder has build.txt,
# requirements.txt (of deploy/image), log4j2.properties (of pipelines/engine), spark-defaults.conf and the wheel
# (pip wheel --no-deps .). Spark is the one of the requirements; YARN and the file systems are the cluster's.
set -euo pipefail
sudo dnf install --assumeyes python3.11
sudo python3.11 -m venv /opt/microguard
aws s3 cp --recursive "$1" /tmp/microguard
pip=(sudo /opt/microguard/bin/pip install --require-hashes --no-cache-dir)
"${pip[@]}" --requirement /tmp/microguard/build.txt
"${pip[@]}" --no-deps --no-build-isolation --requirement /tmp/microguard/requirements.txt
sudo /opt/microguard/bin/pip install --no-index --no-deps /tmp/microguard/microguard-*.whl
sudo install -D --mode=644 --target-directory=/opt/microguard/conf \
  /tmp/microguard/log4j2.properties /tmp/microguard/spark-defaults.conf
sudo /opt/microguard/bin/python -m microguard.sdc.precompile
# Tasks run as the user yarn, and load compiled code only from a folder that this user owns.
sudo chown --recursive yarn /opt/microguard/lib/python3.11/site-packages/microguard/sdc/__pycache__
