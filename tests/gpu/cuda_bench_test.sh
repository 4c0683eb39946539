#!/usr/bin/env bash
# The benchmark over the simulator: every kind of case is in the table, with
# numbers.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }

OUT="$TEST_TMPDIR/table"
JSON="$TEST_TMPDIR/table.jsonl"
tests/gpu/cuda_bench_on_cpu --shape=tiny --json="$JSON" >"$OUT"
cat "$OUT"

mapfile -t ROWS < <(grep '^| ' "$OUT" | tail -n +2)
((${#ROWS[@]} == $(wc -l <"$JSON"))) || die "table and JSON differ in rows"
NUMBER='-?[0-9]+(\.[0-9]+)?'
for row in "${ROWS[@]}"; do
  [[ $row =~ ^\|\ [a-z0-9\ ]+\ \|\ [a-z0-9=-]+\ \|(\ (-|$NUMBER)\ \|){11}$ ]] ||
    die "no row of numbers: $row"
  [[ $row =~ \|\ [0-9.]*[1-9][0-9.]*\ \| ]] || die "nothing but zeros: $row"
done

expect() {  # COUNT PATTERN
  local found
  found="$(printf '%s\n' "${ROWS[@]}" | grep -c "$2" || true)"
  ((found == $1)) || die "$found rows of '$2', not $1"
}
expect 1 '^| copy '
expect 2 '^| decode attention |'
expect 2 '^| decode attention fp8 |'
expect 1 '^| prefill attention |'
expect 1 '^| prefill attention fp8 |'
expect 2 '^| prompt '
expect 2 '^| host time | full '
# Batches of 1, 2 and the most that the 48 pages hold: 4 of 3 blocks under
# full, and 6, which is the most that is tried, where one layer of four leads.
expect 1 '^| decode | full | 33 | 4 '
expect 1 '^| decode | every=4 | 33 | 6 '
expect 6 '^| decode | '
expect 3 '^| product bf16 '
expect 3 '^| product fp8 '
expect 2 '^| decode fp8 weights | full '
# 33 positions of 4 layers, 2 heads, 32 dimensions, K and V, 2 bytes.
expect 1 '^| decode | full | 33 | 2 .* | 0.1 |'
