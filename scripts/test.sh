# shellcheck shell=bash
# ./strata test, and what it counts.  Sourced by ./strata.

# "CASES FAILED SKIPPED", summed over JUnit files.
sum_cases() {
  awk '
    function attribute(name) {
      if (!match($0, " " name "=\"[0-9]+\"")) return 0
      return substr($0, RSTART + length(name) + 3) + 0
    }
    FNR == 1 { seen = 0 }
    !seen && / tests="/ {
      seen = 1
      cases += attribute("tests")
      failed += attribute("failures") + attribute("errors")
      skipped += attribute("disabled")
    }
    / result="skipped"/ { ++skipped }
    END { print cases + 0, failed + 0, skipped + 0 }' "$@" </dev/null
}

# Prints "N passed, N failed" of one `bazel test`: test cases where a target left
# a report, else targets.  Arguments: bazel's output, its folder of results, its
# exit status.  Fails unless all passed.
count_tests() {
  local log="$1" results="$2" status="$3" passed=0 failed=0
  local line label folder cases bad skipped
  local verdicts='PASSED|FLAKY|FAILED TO BUILD|FAILED|TIMEOUT|NO STATUS|REMOTE FAILURE'
  while IFS= read -r line; do
    [[ $line =~ ^(//[^[:space:]]+)[[:space:]]+(\(cached\)[[:space:]])?($verdicts) ]] || continue
    label="${BASH_REMATCH[1]#//}"
    folder="$results/${label/://}"
    cases=1 bad=1 skipped=0
    case "${BASH_REMATCH[3]}" in
      PASSED | FLAKY)  # a flaky test's earlier tries may have left failures
        read -r cases bad skipped < <(cases_below "$folder")
        bad=0
        ;;
      FAILED)
        read -r cases bad skipped < <(cases_below "$folder")
        ((bad > 0)) || bad=1
        ;;
    esac
    ((cases >= bad + skipped)) || cases=$((bad + skipped))
    passed=$((passed + cases - bad - skipped))
    failed=$((failed + bad))
  done <"$log"
  if ((status != 0 && failed == 0)); then failed=1; fi
  printf '%d passed, %d failed\n' "$passed" "$failed"
  ((failed == 0))
}

# sum_cases of the reports of one target, of all its shards; without any, "1 0 0".
cases_below() {
  local reports
  mapfile -t reports < <(find -L "$1" -name test.xml 2>/dev/null)
  if ((${#reports[@]} == 0)); then echo 1 0 0; else sum_cases "${reports[@]}"; fi
}

# Builds what only nvcc compiles, where it is: the server with its CUDA backend and
# the programs of tests/gpu.  The tests above ran the same kernels on the CPU.
build_cuda() {
  [[ -x /usr/local/cuda/bin/nvcc ]] || return 0
  say "Building with nvcc: the CUDA backend"
  local tests
  mapfile -t tests < <(run_bazel query 'filter("_gpu$", //tests/kernels/cuda:all)' \
    --noshow_progress 2>/dev/null)
  run_bazel build --config=cuda --color=no --curses=no \
    --show_progress_rate_limit=10 //server:strata_server //tests/gpu:cuda_bench "${tests[@]}"
}

test_usage() {
  cat <<'TEXT'
usage: ./strata test [bazel arguments]

Installs what is missing, builds and runs all tests; the last line is
"N passed, N failed".  With a label only those tests:

  ./strata test //tests/core/...
  ./strata test //tests/server/... --config=asan    also ubsan, tsan
TEXT
}

run_tests() {
  if wants_help "$@"; then test_usage && return; fi
  PACKAGES+=("${TEST_PACKAGES[@]}")
  install_packages
  # A venv that tests/in_venv.sh finds; the list names what each package needs.
  ensure_venv "$CACHE/venv-tests" "$ROOT/tests/requirements.txt" --no-deps
  say "Building and running the tests (the first time takes minutes)"
  local log status=0 targets=(//...)
  log="$(mktemp)"
  if [[ " $* " == *" //"* ]]; then targets=(); fi
  run_bazel test --keep_going --color=no --curses=no --noshow_loading_progress \
    --show_progress_rate_limit=10 "${targets[@]}" "$@" 2>&1 | tee "$log" || status=$?
  local counts
  counts="$(count_tests "$log" "$ROOT/bazel-testlogs" "$status")" ||
    status=$((status ? status : 1))
  rm -f "$log"
  if ((${#targets[@]} > 0)); then
    counts="$(count_beyond_bazel "$counts")" || status=1
  fi
  printf '%s\n' "$counts"
  return "$status"
}

# The counts $1 with what runs outside of Bazel; what that says goes to standard
# error.  Fails unless all of that passed.
count_beyond_bazel() {
  local passed failed more bad skipped report
  read -r passed _ failed _ <<<"$1"
  report="$(mktemp)"
  (test_training "$report") >&2 || true
  read -r more bad skipped < <(sum_cases "$report")
  if ((more == 0)); then more=1 bad=1; fi  # it did not come so far
  rm -f "$report"
  if ! build_cuda >&2; then ((++more, ++bad)); fi
  printf '%d passed, %d failed\n' "$((passed + more - bad - skipped))" \
    "$((failed + bad))"
  ((bad == 0))
}
