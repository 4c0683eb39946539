# shellcheck shell=bash
# ./strata train and what its tests need.  Sourced by ./strata.

# A private Python with PyTorch: 7 GB on disk, two minutes to install.
TRAINING_VENV="$CACHE/training-venv"

# pip runs from outside, as Debian's venv cannot install it.
ensure_training_venv() {
  local wanted="$ROOT/training/requirements.txt" venv="$TRAINING_VENV"
  if cmp -s "$wanted" "$venv/requirements.txt"; then return 0; fi
  install_packages
  say "Installing PyTorch and transformers into $venv (7 GB, some minutes)"
  mkdir -p "$CACHE"
  rm -rf "$venv"
  /usr/bin/python3 -m venv --without-pip "$venv"
  /usr/bin/python3 -m pip --python "$venv/bin/python" install -q \
    --only-binary :all: --disable-pip-version-check -r "$wanted" </dev/null ||
    die "pip cannot install training/requirements.txt: is the network there, and
  are 7 GB free in $CACHE?"
  cp "$wanted" "$venv/requirements.txt"
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
