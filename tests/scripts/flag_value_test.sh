#!/usr/bin/env bash
# How ./strata up reads the server's flags.
set -euo pipefail
source scripts/up.sh

FAULTS=0
expect() {  # WANTED NAME DEFAULT ARGUMENTS...
  local got
  got="$(flag_value "${@:2}")"
  if [[ $got != "$1" ]]; then
    printf 'flag_value %s: got "%s", want "%s"\n' "${*:2}" "$got" "$1"
    FAULTS=$((FAULTS + 1))
  fi
}

expect 8001 grpc_port 8001
expect 8001 grpc_port 8001 --http_port=9 --my_grpc_port=7
expect 9 grpc_port 8001 --grpc_port=9
expect 9 grpc_port 8001 -grpc_port=9
expect 9 grpc_port 8001 --grpc_port 9 --threads=2
expect 0 grpc_port 8001 --grpc_port=9 --grpc_port=0
expect "a=b c" model "" --model="a=b c"

((FAULTS == 0)) && echo PASSED
