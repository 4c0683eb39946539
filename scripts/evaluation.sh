# shellcheck shell=bash
# ./strata eval, advise and selftext.  Sourced by ./strata; their own flags are
# in evaluation/ and training/self_text.py.

# ask_server MODULE ARGUMENTS: runs evaluation.evaluate and others that ask a
# server, with Debian's Python, for which Debian's gRPC is installed.
ask_server() {
  local module="$1" target own=()
  local run=(env "PYTHONPATH=$ROOT" /usr/bin/python3 -B -P -m "$module")
  shift
  if wants_help "$@"; then show_help "${run[@]}"; fi
  target="$(flag_value target "" "$@")"
  if [[ -z $target && -z $(flag_value model "" "$@") ]]; then
    own=("--model=$MODEL")
    # The text is the model's own.
    [[ $module == training.self_text ]] || own+=("--adapter=$DEMO_ADAPTER")
  fi
  # Mistakes show before the long part.
  if [[ -x ${run[2]} ]]; then "${run[@]}" --check_only "$@" || exit; fi
  if [[ -n $target ]]; then
    PACKAGES=(python3 protobuf-compiler protobuf-compiler-grpc)  # builds nothing
  fi
  PACKAGES+=(python3-grpcio python3-protobuf)
  if [[ -n $(flag_value plot "" "$@") ]]; then
    PACKAGES+=(python3-matplotlib)
  fi
  install_packages >&2
  if [[ -z $target ]]; then
    ensure_built //server:strata_server >&2
    if ((${#own[@]} > 0)); then fetch_model >&2; fi
  fi
  exec "${run[@]}" "${own[@]}" "$@"
}
