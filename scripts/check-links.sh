#!/usr/bin/env bash
# Checks that publish and topology load neither libcurl nor SQLite: that costs more than their whole job.
#
#   scripts/check-links.sh [BUILD-DIR]      (default: build)
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}

status=0
for program in publish topology; do
  needed=$(readelf -d "$build/$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  [[ $needed == *librabbitmq* ]] || { echo "check-links: $build/$program does not even need librabbitmq?" >&2; status=1; }
  if unwanted=$(grep -E '^lib(curl|sqlite)' <<<"$needed"); then
    echo "check-links: $build/$program needs $unwanted" >&2
    status=1
  fi
done
((status)) || echo "check-links: publish and topology need neither libcurl nor SQLite"
exit "$status"
