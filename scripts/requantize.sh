# shellcheck shell=bash
# ./strata requantize.  Sourced by ./strata; its own flags are in requantize/.

# Pure Python with NumPy: seconds to install.
REQUANTIZE_VENV="$CACHE/requantize-venv"

ensure_requantize_venv() {
  ensure_venv "$REQUANTIZE_VENV" "$ROOT/requantize/requirements.txt" --no-deps
}

# requantize ARGUMENTS: the demo model where none is named.
requantize() {
  local program="$ROOT/requantize/requantize.py"
  if wants_help "$@"; then show_help /usr/bin/python3 -B "$program"; fi
  local own=()
  if [[ -z $(flag_value model "" "$@") ]]; then own=("--model=$MODEL"); fi
  # Mistakes show before the long part.
  if [[ -x /usr/bin/python3 ]]; then
    /usr/bin/python3 -B "$program" --check_only "${own[@]}" "$@" || exit
  fi
  ensure_requantize_venv >&2
  if ((${#own[@]} > 0)); then fetch_model >&2; fi
  exec "$REQUANTIZE_VENV/bin/python" -B "$program" "${own[@]}" "$@"
}
