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

bench_economy() {
  # Debian's Python, for which Debian's matplotlib is installed.
  local run=(/usr/bin/python3 -B "$ROOT/tests/bench/economy.py")
  if wants_help "$@"; then show_help "${run[@]}"; fi
  if [[ -z $(flag_value model "" "$@") ]]; then run+=("--model=$MODEL"); fi
  # Mistakes show before the long part.
  if [[ -x ${run[0]} ]]; then "${run[@]}" --check_only "$@" || exit; fi
  PACKAGES+=(python3-matplotlib)
  install_packages
  if [[ -z $(flag_value from_json "" "$@") ]]; then
    ensure_built //server:strata_server
    ensure_built //tests/load:strata_load
    if [[ " ${run[*]} " == *" --model=$MODEL "* ]]; then fetch_model; fi
  fi
  exec "${run[@]}" "$@"
}

bench_speed() {
  local run=(/usr/bin/python3 -B "$ROOT/tests/bench/speed.py") argument
  local with_peer=0
  if wants_help "$@"; then show_help "${run[@]}"; fi
  for argument in "$@"; do
    if [[ $argument == --peer ]]; then with_peer=1; fi
  done
  if [[ -z $(flag_value model "" "$@") ]]; then run+=("--model=$MODEL"); fi
  # Mistakes show before the long part.
  if [[ -x ${run[0]} ]]; then "${run[@]}" --check_only "$@" || exit; fi
  install_packages
  if [[ -z $(flag_value from_json "" "$@") ]]; then
    ensure_requantize_venv
    if ((with_peer)); then
      ensure_peer_venv
      run+=("--peer_python=$PEER_VENV/bin/python")
    fi
    ensure_built //tests/bench:engine_bench
    if [[ " ${run[*]} " == *" --model=$MODEL "* ]]; then fetch_model; fi
  fi
  exec "${run[@]}" "--requantize_python=$REQUANTIZE_VENV/bin/python" "$@"
}

bench_contexts() {
  local run=(/usr/bin/python3 -B "$ROOT/tests/bench/contexts.py") argument
  for argument in "$@"; do
    if [[ $argument =~ ^(-h|--help)$ ]]; then exec "${run[@]}" --help; fi
  done
  install_packages
  ensure_built //server:strata_server
  ensure_built //tests/load:strata_load
  if [[ -z $(flag_value model "" "$@") ]]; then
    fetch_model
    run+=("--model=$MODEL")
  fi
  exec "${run[@]}" "$@"
}

bench_accuracy() {
  local run=(/usr/bin/python3 -B "$ROOT/tests/bench/accuracy.py") argument
  local with_peer=0
  for argument in "$@"; do
    if [[ $argument =~ ^(-h|--help)$ ]]; then exec "${run[@]}" --help; fi
    if [[ $argument == --peer ]]; then with_peer=1; fi
  done
  PACKAGES+=(python3-grpcio python3-protobuf)
  install_packages
  ensure_requantize_venv
  if ((with_peer)); then
    ensure_peer_venv
    run+=("--peer_python=$PEER_VENV/bin/python")
  fi
  ensure_built //server:strata_server
  if [[ -z $(flag_value model "" "$@") ]]; then
    fetch_model
    run+=("--model=$MODEL")
  fi
  exec "${run[@]}" "--requantize_python=$REQUANTIZE_VENV/bin/python" "$@"
}

ensure_peer_venv() {
  [[ -e $PEER_VENV ]] ||
    say "llama.cpp is compiled once, which takes some minutes"
  # The later flag counts: wheels, and sources of what has none.
  ensure_venv "$PEER_VENV" "$ROOT/tests/bench/peer_requirements.txt" \
    --no-deps --only-binary :none:
}
