#!/usr/bin/env bash
# The line that ./strata test closes with, from a run's output and reports.
set -euo pipefail
source scripts/test.sh

WORK="$(mktemp -d)"
trap 'rm -rf "$WORK"' EXIT
FAULTS=0

report() {  # FOLDER ATTRIBUTES [CASES]
  mkdir -p "$WORK/logs/$1"
  printf '<?xml version="1.0"?>\n<testsuites %s name="AllTests">\n  <testsuite name="A" %s>\n%s\n' \
    "$2" "$2" "${3:-}" >"$WORK/logs/$1/test.xml"
}

expect() {  # WHAT STATUS WANTED_LINE WANTED_EXIT, the log on standard input
  local got exit=0
  cat >"$WORK/log"
  got="$(count_tests "$WORK/log" "$WORK/logs" "$2")" || exit=$?
  if [[ $got != "$3" || $exit != "$4" ]]; then
    printf '%s: got "%s" (%s), want "%s" (%s)\n' "$1" "$got" "$exit" "$3" "$4"
    FAULTS=$((FAULTS + 1))
  fi
}

report core/a_test 'tests="7" failures="0" disabled="1" errors="0"' \
  '<testcase name="x" status="run" result="skipped" time="0.1">'
report core/b_test 'tests="5" failures="2" disabled="0" errors="0"'
report core/crash_test 'tests="1" failures="0" errors="1"'
report core/flaky_test 'tests="3" failures="0" disabled="0" errors="0"'
report core/sharded_test/shard_1_of_2 'tests="4" failures="0" errors="0"'
report core/sharded_test/shard_2_of_2 'tests="6" failures="0" errors="0"'
report core/stale_test 'tests="100" failures="0" errors="0"'

expect "all kinds of verdicts" 3 "22 passed, 6 failed" 1 <<'LOG'
INFO: Analyzed 8 targets (0 packages loaded, 0 targets configured).
FAIL: //core:b_test (see /x/test.log)
//core:stale_test is mentioned, without a verdict
//core:a_test                              (cached) PASSED in 0.1s
//core:no_report_test                               PASSED in 0.1s
//core:flaky_test                                    FLAKY, failed in 1 out of 2 in 0.3s
//core:sharded_test                                 PASSED in 0.3s
//core:b_test                                       FAILED in 0.2s
//core:crash_test                                   FAILED in 0.2s
//core:slow_test                                   TIMEOUT in 60.1s
//core:broken_test                         FAILED TO BUILD
//core:other_test                                NO STATUS
LOG

expect "passed" 0 "5 passed, 0 failed" 0 <<'LOG'
//core:a_test   (cached) PASSED in 0.1s
INFO: Build completed successfully, 1 total action
LOG

expect "a failure whose report shows none" 3 "2 passed, 1 failed" 1 <<'LOG'
//core:flaky_test   FAILED in 0.1s
LOG

expect "a build that broke before any test" 1 "0 passed, 1 failed" 1 <<'LOG'
ERROR: /x/BUILD:3:8: name 'cc_libary' is not defined
FAILED: Build did NOT complete successfully (0 packages loaded)
LOG

expect "tests that passed beside a target that does not build" 1 \
  "5 passed, 1 failed" 1 <<'LOG'
//core:a_test   PASSED in 0.1s
LOG

((FAULTS == 0)) && echo PASSED
