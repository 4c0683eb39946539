#!/usr/bin/env bash
# in_venv.sh TEST.py [ARGUMENT...]: runs a Python test with the packages of
# tests/requirements.txt, which ./strata test installed.  For sh_test, with the
# test as first of args and in data.
set -euo pipefail

tests="$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
python="$tests/../.cache/venv-tests/bin/python"
if [[ ! -x $python ]]; then
  printf 'no %s: ./strata test makes it\n' "$python" >&2
  exit 1
fi
exec "$python" "$@"
