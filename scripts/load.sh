# shellcheck shell=bash
# ./strata load, and load soak.  Sourced by ./strata.

# load [soak] ARGUMENTS: of the load client, or of tests/load/soak.py.
load() {
  if [[ ${1:-} == soak ]]; then
    shift
    soak "$@"
    return
  fi
  local folder status=0
  folder="$(flag_value report "" "$@")"
  if [[ -z $folder ]]; then run_binary //tests/load:strata_load "$@"; fi
  PACKAGES+=(python3-matplotlib)
  install_packages >&2
  ensure_built //tests/load:strata_load >&2
  "$(binary_of //tests/load:strata_load)" "$@" || status=$?
  # A run that failed has its report as well; wrong flags leave none.
  if ((status < 2)); then make_report "$folder" || status=1; fi
  return "$status"
}

# The Markdown and the picture of a report.json.
make_report() {
  [[ -s $1/report.json ]] || return 0
  /usr/bin/python3 -B "$ROOT/tests/load/report.py" "$1"
  say "The report is $1/report.md"
}

soak() {
  local run=(/usr/bin/python3 -B "$ROOT/tests/load/soak.py") status=0
  if wants_help "$@"; then show_help "${run[@]}"; fi
  if [[ -z $(flag_value model "" "$@") ]]; then run+=("--model=$MODEL"); fi
  # Mistakes show before the long part.
  if [[ -x ${run[0]} ]]; then "${run[@]}" --check_only "$@" || exit; fi
  PACKAGES+=(python3-matplotlib)
  install_packages
  ensure_built //server:strata_server
  ensure_built //tests/load:strata_load
  if [[ " ${run[*]} " == *" --model=$MODEL "* ]]; then fetch_model; fi
  "${run[@]}" "$@" || status=$?
  if ((status < 2)); then
    make_report "$(flag_value report "$CACHE/soak" "$@")" || status=1
  fi
  return "$status"
}
