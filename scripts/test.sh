#!/usr/bin/env bash
# Installs what is missing, builds claimq and passes all its tests: once as it is shipped (Release), once under the
# address and undefined-behaviour sanitizers.
#
#   scripts/test.sh [--quick] [RELEASE-DIR [SANITIZED-DIR]]      (default: build build-asan)
#
#   --quick              the release build only
#   CLAIMQ_CMAKE_ARGS    more arguments for cmake, separated by blanks (CI: -DCLAIMQ_WERROR=ON)
#   CTEST_PARALLEL_LEVEL tests at once (default 3: most of their time is waiting)
#
# Goes on after a failure, to say all that is wrong. Exit status: 0 passed, 1 failed, 64 usage.
set -euo pipefail

usage() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; }
quick=false
folders=()
for argument; do
  case $argument in
    --quick) quick=true ;;
    -h|--help) usage; exit 0 ;;
    -*) usage >&2; exit 64 ;;
    *) folders+=("$(realpath -m -- "$argument")") ;;
  esac
done
((${#folders[@]} <= 2)) || { usage >&2; exit 64; }

cd "$(dirname "$0")/.."
release=${folders[0]:-build}
sanitized=${folders[1]:-build-asan}
read -ra more <<<"${CLAIMQ_CMAKE_ARGS:-}"
failed=()
export CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-3}

# A command, how long it took, and whether it failed.
stage() {
  local name=$1 begin=$SECONDS status=0
  shift
  echo "== $name: $*"
  "$@" || status=$?
  ((status == 0)) || failed+=("$name")
  echo "== $name: status $status after $((SECONDS - begin)) s"
  return "$status"
}

# Each step needs the one before it; the other folder needs none of them.
build_and_test() {
  local folder=$1
  shift
  stage "configure $folder" cmake -S . -B "$folder" -G Ninja -DBUILD_TESTING=ON "$@" "${more[@]}" &&
    stage "build $folder" cmake --build "$folder" &&
    stage "test $folder" ctest --test-dir "$folder" --output-on-failure --no-tests=error
}

scripts/install-deps.sh build test
build_and_test "$release" -DCMAKE_BUILD_TYPE=Release || true
tested=$release
if ! $quick; then
  export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
  build_and_test "$sanitized" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCLAIMQ_SANITIZE=ON || true
  tested+=" and $sanitized"
fi

if ((${#failed[@]})); then
  printf 'test.sh: FAILED after %d s: %s\n' "$SECONDS" "$(IFS=,; echo "${failed[*]}")"
  exit 1
fi
echo "test.sh: all tests passed in $tested ($SECONDS s)"
