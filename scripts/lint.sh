#!/usr/bin/env bash
# Looks at the code without running it: the scripts with shellcheck, the C++ with clang-format and clang-tidy 14.
#
#   scripts/lint.sh [scripts|format|tidy]… [BUILD-DIR]      (default: all three, build-clang)
#
# clang-tidy reads the compile commands of BUILD-DIR, which is configured where it has none.
set -euo pipefail

cd "$(dirname "$0")/.."
checks=()
build='build-clang'
for argument; do
  case $argument in
    scripts|format|tidy) checks+=("$argument") ;;
    -h|--help) sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    -*) echo "lint.sh: unknown option $argument" >&2; exit 64 ;;
    *) build=$argument ;;
  esac
done
((${#checks[@]})) || checks=(scripts format tidy)

# Files that match a pattern below these folders, separated by NUL; none at all would be a check of nothing.
files() {
  local found
  mapfile -d '' found < <(find "${@:2}" -name "$1" -print0 | sort -z)
  ((${#found[@]})) || { echo "lint.sh: no $1 below ${*:2}" >&2; return 1; }
  printf '%s\0' "${found[@]}"
}

# One clang-tidy a file, on every core; .clang-tidy says which findings are errors. What it counts and suppresses goes to
# standard error, which is kept for a failure.
run_tidy() { xargs -0r -n 1 -P "$(nproc)" clang-tidy-14 -p "$build" --quiet "$@" 2>>"$build/tidy.log"; }

# The path analysis is left out where CLI11 is included: it walks through CLI11's templates for minutes a file, and those
# files only read options.
tidy() {
  local status=0 cli11='<CLI/|"cli/command_line'
  if [[ ! -f $build/compile_commands.json ]]; then
    CC=clang CXX=clang++ cmake -S . -B "$build" -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null || return 1
  fi
  : >"$build/tidy.log"
  files '*.cpp' src | xargs -0 grep -LZE "$cli11" | run_tidy || status=1
  files '*.cpp' src | xargs -0 grep -lZE "$cli11" | run_tidy --checks=-clang-analyzer-* || status=1
  ((status == 0)) || cat "$build/tidy.log" >&2
  return "$status"
}

# Called as a condition, where set -e does not hold: hence the &&.
passes() {
  case $1 in
    scripts) shellcheck -x -P SCRIPTDIR scripts/*.sh .ci/run && scripts/check-layers.sh --self-test ;;
    format) files '*.[ch]pp' src include tests | xargs -0 clang-format-14 --dry-run -Werror ;;
    tidy) tidy ;;
  esac
}

status=0
for check in "${checks[@]}"; do
  begin=$SECONDS
  if passes "$check"; then verdict='clean'; else verdict='FAILED'; status=1; fi
  echo "lint.sh: $check: $verdict in $((SECONDS - begin)) s"
done
exit "$status"
