#!/usr/bin/env bash
# Measures claimq beside what a user would pick instead (pika, Go, Node, amqp-publish) and beside the broker's ceiling:
# the same claims, the same broker, the same claims system, in alternating rounds. Every run is checked: all taken,
# nothing lost, nothing twice.
#
#   scripts/bench.sh [--quick] [--cells NAME,…] [--rounds N] [--realtime] [--help] …     (--help: all options)
#
# Starts a broker and an nginx of its own on loopback, and stops them. Results: a table on standard output, and
# results.json, results.md and results.svg in BUILD_DIR/results. BUILD_DIR (default: build-bench) is built as Release.
# Peers come from scripts/install-deps.sh bench; one that is missing is said and left out.
#
# Exit status: 0 all runs were right; 1 one was not; 64 usage; 69 something it needs is missing.
set -euo pipefail

cd "$(dirname "$0")/.."
build=${BUILD_DIR:-build-bench}
bench=(/usr/bin/python3 tests/bench/bench.py --build "$build")

for argument; do
  case $argument in
    -h|--help) sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; "${bench[@]}" --help; exit 0 ;;
  esac
done
for tool in cmake ninja cc nginx /usr/bin/python3; do
  command -v "$tool" >/dev/null || { echo "bench.sh: no $tool: scripts/install-deps.sh build test bench" >&2; exit 69; }
done
/usr/bin/python3 -c 'import pika' 2>/dev/null || { echo "bench.sh: no python3-pika: scripts/install-deps.sh test" >&2; exit 69; }

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF >/dev/null
cmake --build "$build"
exec "${bench[@]}" "$@"
