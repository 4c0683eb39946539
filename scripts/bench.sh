# shellcheck shell=bash
# ./strata bench: measurements that take minutes.  Sourced by ./strata.

# The economy benchmark; its own flags are in tests/bench/economy.py.
bench() {
  local what=economy
  if (($# > 0)) && [[ $1 != -* ]]; then
    what="$1"
    shift
  fi
  [[ $what == economy ]] || die "no benchmark '$what'; there is: economy"
  # Debian's Python, for which Debian's matplotlib is installed.
  local run=(/usr/bin/python3 -B "$ROOT/tests/bench/economy.py") argument
  for argument in "$@"; do
    if [[ $argument =~ ^(-h|--help)$ ]]; then exec "${run[@]}" --help; fi
  done
  PACKAGES+=(python3-matplotlib)
  install_packages
  if [[ -z $(flag_value from_json "" "$@") ]]; then
    ensure_built //server:strata_server
    ensure_built //tests/load:strata_load
    if [[ -z $(flag_value model "" "$@") ]]; then
      fetch_model
      run+=("--model=$MODEL")
    fi
  fi
  exec "${run[@]}" "$@"
}
