#!/usr/bin/env bash
# Checks the arrows of the design: which folder may include what. Prints file:line and the broken rule, exits 1.
#
#   scripts/check-layers.sh [ROOT]          (default: this repository)
#   scripts/check-layers.sh --self-test     breaks every rule once and expects to be told of each
set -euo pipefail

# The include lines of src and include, one "path:line:<header>" or "path:line:"header"" each.
all_includes() {
  (cd -- "$1" && grep -rnE '^[[:space:]]*#[[:space:]]*include' src include) |
    sed -E 's/^([^:]+:[0-9]+:)[[:space:]]*#[[:space:]]*include[[:space:]]*/\1/'
}

# Both take the includes in question on standard input and print those that break the rule.
#   only_in FOLDERS HEADERS RULE    nobody but these folders may include such headers
#   never_in FOLDERS HEADERS RULE   these folders may not
only_in()  { grep -E "^[^:]+:[0-9]+:[<\"]($2)" | grep -vE "^($1)" | sed "s|\$|   # $3|" || true; }
never_in() { grep -E "^($1)[^:]*:[0-9]+:[<\"]($2)" | sed "s|\$|   # $3|" || true; }

# A folder's headers, however a file spells the way to them.
headers_of() { printf '([^">]*/)?(%s)/' "$1"; }

broken_rules() {
  local includes
  includes=$(all_includes "$1") || { echo "check-layers: no includes found below $1" >&2; exit 66; }
  check() { "$@" <<<"$includes"; }

  check only_in 'src/amqp/' '(rabbitmq-c/)?amqp(_[a-z]+)*\.h[>"]' 'rabbitmq-c is for src/amqp only'
  check only_in 'src/http/' 'curl/' 'libcurl is for src/http only'
  check only_in 'src/store/' 'sqlite3(ext)?\.h' 'SQLite is for src/store only'
  check only_in 'src/core/' 'nlohmann/' 'nlohmann/json is for src/core only'
  check only_in 'src/cli/|src/[a-z]+_main\.cpp' 'CLI/' 'CLI11 is for src/cli and the mains only'

  # A standard header has neither a dot nor a slash; the compiler knows which of those exist.
  grep -E '^include/' <<<"$includes" | grep -vE ':(<[a-z_0-9]+>|"claimq/)' |
    sed 's|$|   # include/claimq includes the standard library and itself only|' || true

  check never_in 'src/(consume|publish)/' "$(headers_of 'amqp|http|store')" 'a loop never includes an adapter'
  check never_in 'src/amqp/' "$(headers_of 'http|store')" 'adapters do not include each other'
  check never_in 'src/http/' "$(headers_of 'amqp|store')" 'adapters do not include each other'
  check never_in 'src/store/' "$(headers_of 'amqp|http')" 'adapters do not include each other'
  check never_in 'src/(core|amqp|http|store)/' "$(headers_of 'consume|publish')" 'nothing below the mains includes a loop'
  check never_in 'src/core/' "$(headers_of 'amqp|http|store|cli')" 'core includes include/claimq only'
}

self_test() {
  local tree expected=0 found
  tree=$(mktemp -d)
  # shellcheck disable=SC2064  # $tree is local: it has to be expanded now
  trap "rm -rf -- '$tree'" EXIT
  put() { mkdir -p "$tree/$(dirname "$1")"; printf '%s\n' "$2" >>"$tree/$1"; }
  good() { put "$@"; }
  bad() { put "$@"; expected=$((expected + 1)); }

  good src/amqp/broker.cpp '#include <amqp_tcp_socket.h>'
  good src/http/call.cpp '#include <curl/curl.h>'
  good src/store/inbox.cpp '#include <sqlite3.h>'
  good src/core/claim.cpp '#include <nlohmann/json.hpp>'
  good src/cli/options.cpp '#include <CLI/CLI.hpp>'
  good src/consumer_main.cpp '#include <CLI/CLI.hpp>'
  good src/consumer_main.cpp '#include "amqp/broker.hpp"'
  good src/consume/loop.cpp '#include "claimq/inbox.hpp"'
  good src/amqp/broker.cpp '#include "amqp/url.hpp"'
  good src/core/claim.cpp '// #include "store/inbox.hpp"'
  good include/claimq/inbox.hpp '#include <string_view>'
  good include/claimq/inbox.hpp '#include "claimq/clock.hpp"'
  found=$(broken_rules "$tree")
  [[ -z $found ]] || { printf 'check-layers: self-test: these are allowed:\n%s\n' "$found" >&2; exit 1; }

  bad src/publish/loop.cpp '#include <amqp.h>'
  bad src/cli/url.cpp '  #  include <rabbitmq-c/amqp.h>'
  bad src/consume/call.cpp '#include <curl/curl.h>'
  bad src/consumer_main.cpp '#include <sqlite3.h>'
  bad src/http/answer.cpp '#include <nlohmann/json.hpp>'
  bad src/core/number.cpp '#include <CLI/CLI.hpp>'
  bad include/claimq/clock.hpp '#include <unistd.h>'
  bad include/claimq/clock.hpp '#include "store/inbox.hpp"'
  bad src/consume/turn.cpp '#include "amqp/broker.hpp"'
  bad src/publish/turn.cpp '#include "../store/inbox.hpp"'
  bad src/amqp/frame.cpp '#include "http/call.hpp"'
  bad src/http/pool.cpp '#include "store/inbox.hpp"'
  bad src/store/lock.cpp '#include "src/amqp/url.hpp"'
  bad src/amqp/drain.cpp '#include "consume/turn.hpp"'
  bad src/core/decimal.cpp '#include "cli/number.hpp"'
  found=$(broken_rules "$tree" | wc -l)
  ((found == expected)) || {
    printf 'check-layers: self-test: %d of %d broken rules found:\n' "$found" "$expected" >&2
    broken_rules "$tree" >&2
    exit 1
  }
  echo "check-layers: self-test passed, $expected broken rules found"
}

case ${1:-} in
  --self-test) self_test; exit 0 ;;
  -h|--help) sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; exit 0 ;;
esac
(($# <= 1)) || { echo "usage: check-layers.sh [ROOT | --self-test]" >&2; exit 64; }
root=${1:-$(dirname "$0")/..}
found=$(broken_rules "$root")
[[ -z $found ]] || { printf '%s\n' "$found"; exit 1; }
echo "check-layers: every include is where it may be"
