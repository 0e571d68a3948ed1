#!/usr/bin/env bash
# Write the lock files anew from pyproject.toml's ranges, for Python 3.11 to 3.13: `make lock`.
#
#   requirements.lock      what the operator's image holds
#   requirements-dev.lock  the same pins, and what building, linting and testing need besides
#
# Pins and hashes only: whichever package index pip is set up for serves them.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-.venv/bin/python}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet 'uv>=0.9,<1'
# uv reads no PIP_CERT
[ -z "${PIP_CERT:-}" ] || export SSL_CERT_FILE=$PIP_CERT
compile() {
  "$work/venv/bin/uv" pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
    --no-emit-index-url pyproject.toml --extra operator "$@" >/dev/null
}
compile --output-file "$work/requirements.lock"
compile --group dev --constraint "$work/requirements.lock" --no-annotate --output-file "$work/requirements-dev.lock"
mv "$work"/requirements*.lock .
