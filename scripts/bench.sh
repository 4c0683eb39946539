# shellcheck shell=bash
# ./strata bench: measurements that take minutes.  Sourced by ./strata.

# llama.cpp, compiled for this CPU.
PEER_VENV="$CACHE/peer-venv"

# The flags are in tests/bench.
bench() {
  local what=economy
  if (($# > 0)) && [[ $1 != -* ]]; then
    what="$1"
    shift
  fi
  case "$what" in
    economy) bench_economy "$@" ;;
    speed) bench_speed "$@" ;;
    contexts) bench_contexts "$@" ;;
    accuracy) bench_accuracy "$@" ;;
    *) die "no benchmark '$what'; there are: economy, speed, contexts, accuracy" ;;
  esac
}

# begin_bench SCRIPT FLAGS: shows its help, or mistakes in the flags before the
# long part; sets RUN.  Debian's Python, for which Debian's packages are.
begin_bench() {
  RUN=(/usr/bin/python3 -B "$ROOT/tests/bench/$1.py")
  shift
  if wants_help "$@"; then show_help "${RUN[@]}"; fi
  if [[ -z $(flag_value model "" "$@") ]]; then RUN+=("--model=$MODEL"); fi
  if [[ -x ${RUN[0]} ]]; then "${RUN[@]}" --check_only "$@" || exit; fi
}

fetch_model_of_run() {
  if [[ " ${RUN[*]} " == *" --model=$MODEL "* ]]; then fetch_model; fi
}

# Whether the results of an earlier run are shown again.
measures_nothing() { [[ -n $(flag_value from_json "" "$@") ]]; }

bench_economy() {
  begin_bench economy "$@"
  PACKAGES+=(python3-matplotlib)
  install_packages
  if ! measures_nothing "$@"; then
    ensure_built //server:strata_server
    ensure_built //tests/load:strata_load
    fetch_model_of_run
  fi
  exec "${RUN[@]}" "$@"
}

bench_speed() {
  begin_bench speed "$@"
  install_packages
  if ! measures_nothing "$@"; then
    ensure_engines "$@"
    ensure_built //tests/bench:engine_bench
    fetch_model_of_run
  fi
  exec "${RUN[@]}" "$@"
}

bench_contexts() {
  begin_bench contexts "$@"
  install_packages
  ensure_built //server:strata_server
  ensure_built //tests/load:strata_load
  fetch_model_of_run
  exec "${RUN[@]}" "$@"
}

bench_accuracy() {
  begin_bench accuracy "$@"
  PACKAGES+=(python3-grpcio python3-protobuf)
  install_packages
  ensure_engines "$@"
  ensure_built //server:strata_server
  fetch_model_of_run
  exec "${RUN[@]}" "$@"
}

# Python for requantize, and for llama.cpp where it is asked for.
ensure_engines() {
  local argument
  ensure_requantize_venv
  RUN+=("--requantize_python=$REQUANTIZE_VENV/bin/python")
  for argument in "$@"; do
    [[ $argument == --peer ]] || continue
    ensure_peer_venv
    RUN+=("--peer_python=$PEER_VENV/bin/python")
    return
  done
}

ensure_peer_venv() {
  [[ -e $PEER_VENV ]] ||
    say "llama.cpp is compiled once, which takes some minutes"
  # The later flag counts: wheels, and sources of what has none.
  ensure_venv "$PEER_VENV" "$ROOT/tests/bench/peer_requirements.txt" \
    --no-deps --only-binary :none:
}
