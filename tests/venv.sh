#!/usr/bin/env bash
# Make the virtual environment DIR from requirements-dev.lock: `tests/venv.sh DIR`, called by `make venv`.
#
# Takes the first of python3, python3.13, python3.12, python3.11 that is new enough; PYTHON=<program> overrides it.
# What Debian lacks (python3, python3-venv) is installed when this runs as root. Each package is checked against the
# hashes of the lock; the project itself is installed editable, without the network.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:?usage: tests/venv.sh DIR}

fit() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null; }
find_python() {
  local name
  for name in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if fit "$name"; then command -v "$name"; return; fi
  done
  return 1
}
install() {
  echo "installing $* from Debian" >&2
  export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
  apt-get -o DPkg::Lock::Timeout=300 -qq update
  apt-get -o DPkg::Lock::Timeout=300 -qq install --no-install-recommends "$@" >/dev/null
}

python=$(find_python) || { install python3 python3-venv ca-certificates; python=$(find_python); } ||
  { echo "tests/venv.sh: no Python 3.11 to 3.13 here" >&2; exit 1; }
"$python" -c 'import ensurepip, venv' 2>/dev/null || install python3-venv
fit "$venv/bin/python" || "$python" -m venv --clear "$venv"
"$venv/bin/pip" install --quiet --require-hashes -r requirements-dev.lock
"$venv/bin/pip" install --quiet --no-deps --no-build-isolation --editable .
