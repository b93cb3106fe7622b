#!/usr/bin/env bash
# Builds the fuzz targets (clang, address and undefined-behaviour sanitizers) and runs each for a while, two at a time.
#
#   scripts/fuzz.sh [SECONDS-PER-TARGET [BUILD-DIR]]      (default: 60 build-fuzz)
#
#   CLAIMQ_CMAKE_ARGS   more arguments for cmake, separated by blanks (CI: -DCLAIMQ_WERROR=ON)
#   CLAIMQ_FUZZ_JOBS    targets at once (default 2)
#   CLAIMQ_FUZZ_TARGETS only these, separated by blanks (default: all)
#
# Starts from tests/fuzz/corpus and what earlier runs have found (BUILD-DIR/corpus). Prints a line for each target: its
# verdict, runs, edges and features covered. An input that fails is kept below BUILD-DIR/found; to see it fail again:
#
#   BUILD-DIR/fuzz_TARGET BUILD-DIR/found/TARGET/crash-…
#
# and once the bug is mended, the input goes to tests/fuzz/corpus/TARGET, which the unit tests replay.
# Exit status: 0 nothing was found, 1 something was, 64 usage, 69 no clang.
set -euo pipefail

usage() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; }
case ${1:-} in -h|--help) usage; exit 0 ;; esac
seconds=${1:-60}
if (($# > 2)) || ! [[ $seconds =~ ^[1-9][0-9]{0,5}$ ]]; then usage >&2; exit 64; fi
build=$(realpath -m -- "${2:-$(dirname "$0")/../build-fuzz}")
cd "$(dirname "$0")/.."
read -ra more <<<"${CLAIMQ_CMAKE_ARGS:-}"
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

command -v clang++ >/dev/null || { echo 'fuzz.sh: no clang++ (scripts/install-deps.sh lint)' >&2; exit 69; }
cmake -S . -B "$build" -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=RelWithDebInfo -DBUILD_TESTING=OFF \
  -DCLAIMQ_FUZZ=ON "${more[@]}" >/dev/null
cmake --build "$build" --target fuzzers

# Which dictionary helps which target.
dictionary_of() {
  case $1 in
    amqp_url) echo tests/fuzz/amqp_url.dict ;;
    claim|claim_source) echo tests/fuzz/json.dict ;;
    http_call|http_response) echo tests/fuzz/http.dict ;;
  esac
}

# One target, bounded by libFuzzer's clock and, should that fail, by timeout's.
fuzz() {
  local target=$1 log=$build/found/$1.log dictionary status=0
  local found=$build/found/$target corpus=$build/corpus/$target options=()
  mkdir -p "$found" "$corpus"
  dictionary=$(dictionary_of "$target")
  [[ -z $dictionary ]] || options+=(-dict="$dictionary")
  timeout --kill-after=10 $((seconds + 120)) "$build/fuzz_$target" -max_total_time="$seconds" -timeout=25 \
    -rss_limit_mb=2048 -max_len=4096 -use_value_profile=1 -print_final_stats=1 -artifact_prefix="$found/" \
    "${options[@]}" "$corpus" "tests/fuzz/corpus/$target" >"$log" 2>&1 </dev/null || status=$?
  report "$target" "$status" "$log" "$found"
  return "$status"
}

report() {
  local target=$1 status=$2 log=$3 found=$4 runs covered
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  covered=$(sed -nE 's/^.* cov: ([0-9]+) ft: ([0-9]+) .*$/\1 edges, \2 features/p' "$log" | tail -n 1)
  if ((status == 0)); then
    printf 'fuzz.sh: %-16s ok: %s runs, %s\n' "$target" "${runs:-?}" "${covered:-nothing covered}"
    return
  fi
  printf 'fuzz.sh: %-16s FAILED with status %d: %s runs, %s\n' "$target" "$status" "${runs:-?}" "${covered:-nothing}"
  grep -E '^does not hold|ERROR: |runtime error:|SUMMARY: ' "$log" | head -n 5 | sed 's/^/fuzz.sh:   /' || true
  printf 'fuzz.sh:   log %s, inputs below %s\n' "$log" "$found"
  find "$found" -type f -newer "$build/found/begin" -printf "fuzz.sh:   again: $build/fuzz_$target %p\n"
}

# A target is a file: none can be forgotten here.
if [[ -n ${CLAIMQ_FUZZ_TARGETS:-} ]]; then
  read -ra targets <<<"$CLAIMQ_FUZZ_TARGETS"
else
  mapfile -t targets < <(find tests/fuzz -name '*_fuzz.cpp' -printf '%f\n' | sed 's/_fuzz\.cpp$//' | sort)
fi
mkdir -p "$build/found"
touch "$build/found/begin"

jobs_at_once=${CLAIMQ_FUZZ_JOBS:-2}
running=0 failed=0
for target in "${targets[@]}"; do
  if ((running == jobs_at_once)); then
    wait -n || failed=$((failed + 1))
    running=$((running - 1))
  fi
  fuzz "$target" &
  running=$((running + 1))
done
for ((; running > 0; running--)); do wait -n || failed=$((failed + 1)); done

printf 'fuzz.sh: %d targets, %d failed\n' "${#targets[@]}" "$failed"
((failed == 0))
