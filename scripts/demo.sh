#!/usr/bin/env bash
# Shows claimq at work, from a fresh Debian 12 machine, and checks what it shows: the exit status is 0 only if every
# claim ended where SPEC says, which an independent client (python3-pika) and the store itself have to confirm.
#
#   scripts/demo.sh [--help]
#
# Touches nothing of yours: a private broker on a free loopback port, a claims double, and a store, all in a temporary
# folder that goes at the end together with what was started. Only the build folder stays (BUILD_DIR, default: build).
set -euo pipefail

(($# == 0)) || { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; [[ $1 == -h || $1 == --help ]] && exit 0; exit 64; }

cd "$(dirname "$0")/.."
build=${BUILD_DIR:-build}
claims=(tests/claims/*.json tests/claims/*.ndjson)
partner=''
broker_started=false
step='before the first step'
count=0
tmp=$(mktemp -d "${TMPDIR:-/tmp}/claimq-demo.XXXXXX")

say()  { step=$1; printf '\n%d. %s\n' $((++count)) "$1"; }
show() { printf '   $ %s\n' "$*"; }
indented() { "$@" 2>&1 | sed 's/^/     /'; }
run()  { show "$@"; indented "$@"; }

clean_up() {
  local status=$?
  trap - EXIT
  if [[ -n $partner ]]; then kill "$partner" 2>/dev/null || true; fi
  if $broker_started; then scripts/mq-down.sh >/dev/null || true; fi
  if ((status == 0 || status > 128)); then
    rm -rf -- "$tmp"
  else
    printf '\nFAILED (status %d): %s\nlogs and store are left in %s\n' "$status" "$step" "$tmp" >&2
  fi
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

free_port() { /usr/bin/python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# Sets url, to nothing where the double could not listen on that port.
start_partner() {
  scripts/partner.py claim --port "$1" >"$tmp/partner.log" 2>&1 &
  partner=$!
  for ((i = 0; i < 100; i++)); do
    url=$(sed -n 's/.* listens on //p' "$tmp/partner.log")
    if [[ -n $url ]] || ! kill -0 "$partner" 2>/dev/null; then return; fi
    sleep 0.1
  done
}

publish_and_consume() {
  show "$build/publish tests/claims/*.json tests/claims/*.ndjson"
  indented "$build/publish" "${claims[@]}"
  run "$build/consumer" --claim "$url" --until-empty --max-seconds 60
  run curl -fsS "$url/_stats"
  curl -fsS "$url/_stats" >"$1"
}

say "What is missing is installed (Debian packages)"
run scripts/install-deps.sh build test

say "The programs are built in $build"
# A build folder that is there already is built as it was configured: its tests stay on, if they were.
[[ -f $build/CMakeCache.txt ]] || run cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF
run cmake --build "$build"

say "A broker on loopback, private to this demo"
export EAI_MQ_NODE="claimq-demo-$$@localhost" EAI_MQ_DIR=$tmp/mq EAI_MQ_PORT
EAI_MQ_PORT=$(free_port)
show "export EAI_MQ_NODE=$EAI_MQ_NODE EAI_MQ_PORT=$EAI_MQ_PORT EAI_MQ_DIR=$EAI_MQ_DIR"
broker_started=true
run scripts/mq-up.sh
export EAI_AMQP_URL="amqp://guest:guest@127.0.0.1:$EAI_MQ_PORT/%2F" EAI_MQ_DB=$tmp/processed.db
unset EAI_AMQP_URL_FILE EAI_CLAIM_TOKEN EAI_CLAIM_TOKEN_FILE
show "export EAI_AMQP_URL=$EAI_AMQP_URL EAI_MQ_DB=$EAI_MQ_DB"

say "A claims system (the double), which rejects claims without documents and is always too busy for BUSY-…"
show "scripts/partner.py claim &"
start_partner 9202
[[ -n $url ]] || { echo "     port 9202 is taken: a free one instead"; start_partner 0; }
[[ -n $url ]] || { cat "$tmp/partner.log" >&2; exit 69; }
echo "     claims double listens on $url"

say "The queue is declared"
run "$build/topology"

say "${#claims[@]} files of claims are published, and handed to the claims system"
publish_and_consume "$tmp/first.json"

say "The same files once more: what was accepted is acked without a call, what was refused is tried again"
publish_and_consume "$tmp/second.json"

say "What happened, asked of the queue (with pika), the store and the claims system"
/usr/bin/python3 scripts/demo_check.py "$tmp/first.json" "$tmp/second.json" "${claims[@]}"

cat <<END

What to try next
   scripts/mq-up.sh                                          the lab's broker on port 5672; stop it with scripts/mq-down.sh
   $build/topology --check                                    is the queue as it should be?
   scripts/partner.py claim --delay 2 &                      a slow claims system on port 9202
   $build/publish --json tests/claims/accepted-*.json         a receipt for every claim
   $build/consumer --claim http://127.0.0.1:9202 --max-seconds 10
   scripts/mq-ctl.sh list_queues name messages               what is left, and in claim.dead
   scripts/test.sh                                           all tests
END
