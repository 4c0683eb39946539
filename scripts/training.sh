# shellcheck shell=bash
# ./strata train and what its tests need.  Sourced by ./strata.

# PyTorch: 7 GB on disk, two minutes to install.
TRAINING_VENV="$CACHE/training-venv"

ensure_training_venv() {
  [[ -e $TRAINING_VENV ]] || say "PyTorch takes 7 GB below $CACHE and some minutes"
  ensure_venv "$TRAINING_VENV" "$ROOT/training/requirements.txt"
}

# train ARGUMENTS: the demo model's where none is named.
train() {
  local run=(env "PYTHONPATH=$ROOT" "$TRAINING_VENV/bin/python" -B -P
    -m training.train)
  local argument
  for argument in "$@"; do
    if [[ $argument =~ ^(-h|--help)$ ]]; then
      exec env "PYTHONPATH=$ROOT" /usr/bin/python3 -B -P -m training.train --help
    fi
  done
  ensure_training_venv >&2
  if [[ -z $(flag_value model "" "$@") ]]; then
    fetch_model >&2
    run+=("--model=$MODEL")
  fi
  exec "${run[@]}" "$@"
}

# Runs tests/training, which the server built before serves; leaves a JUnit
# report at $1.
test_training() {
  ensure_training_venv
  say "Running the tests of training/"
  (cd "$ROOT/tests/training" &&
    PYTHONPATH="$ROOT:$PWD" "$TRAINING_VENV/bin/python" -B -m pytest -q \
      -p no:cacheprovider --junitxml="$1" ./*_test.py </dev/null)
}
