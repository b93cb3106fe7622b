#!/usr/bin/env bash
# Installs the Debian 12 packages that claimq needs, and only those that are missing.
#
#   scripts/install-deps.sh [build|test|lint|bench|all]…      (default: build test)
#
#   build   compiler and libraries of the three programs
#   test    GoogleTest, a broker, the independent clients that check the programs, strace to make calls fail
#   lint    clang, its sanitizers and fuzzer, its format and tidy tools, shellcheck
#   bench   what the benchmark puts claimq beside (Go, amqp-tools), nginx, strace, valgrind; not part of "all"
#
# Does nothing, and needs no network, where nothing is missing. Uses sudo when not root.
set -euo pipefail

build=(cmake ninja-build g++ pkg-config librabbitmq-dev libcurl4-openssl-dev libsqlite3-dev
       nlohmann-json3-dev libcli11-dev libssl-dev)
test=(libgtest-dev libgmock-dev rabbitmq-server python3 python3-pika python3-pytest
      sqlite3 openssl curl procps iproute2 strace)
lint=(clang clang-format clang-tidy libclang-rt-14-dev shellcheck)
bench=(golang-go golang-github-rabbitmq-amqp091-go-dev golang-github-mattn-go-sqlite3-dev amqp-tools nginx-light
       python3-pika rabbitmq-server gcc strace valgrind)
# invoke-rc.d asks this file; 101 means "start nothing" (Debian policy 9.3.3).
policy=/usr/sbin/policy-rc.d

die() { printf 'install-deps: %s\n' "$*" >&2; exit 69; }
as_root() { if ((EUID == 0)); then "$@"; else sudo "$@"; fi; }
usage() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; }

wanted=()
(($#)) || set -- build test
for set_name; do
  case $set_name in
    build) wanted+=("${build[@]}") ;;
    test)  wanted+=("${test[@]}") ;;
    lint)  wanted+=("${lint[@]}") ;;
    bench) wanted+=("${bench[@]}") ;;
    all)   wanted+=("${build[@]}" "${test[@]}" "${lint[@]}") ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; exit 64 ;;
  esac
done

# A package that was removed but not purged is known to dpkg and yet not installed: ask for the status.
is_installed() { [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }
missing=()
for package in "${wanted[@]}"; do is_installed "$package" || missing+=("$package"); done
((${#missing[@]})) || exit 0

((EUID == 0)) || command -v sudo >/dev/null || die "not root and no sudo; missing packages: ${missing[*]}"

# Debian starts a freshly installed broker on all interfaces, with guest/guest, and epmd on 0.0.0.0 beside it; nginx
# too. Nothing here needs them: mq-up.sh and bench.sh start their own on loopback.
broker_is_new=false
nginx_is_new=false
[[ " ${missing[*]} " == *" rabbitmq-server "* ]] && broker_is_new=true
[[ " ${missing[*]} " == *" nginx-light "* ]] && nginx_is_new=true
policy_is_ours=false
log=$(mktemp)
clean_up() {
  rm -f -- "$log"
  if $policy_is_ours; then as_root rm -f "$policy"; fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
if { $broker_is_new || $nginx_is_new; } && [[ ! -e $policy ]]; then
  policy_is_ours=true
  printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
  as_root chmod 755 "$policy"
fi

echo "install-deps: installing ${missing[*]}"
# apt-get update ends with 0 where a source is out of reach: the reason then stands in what it said before the install.
apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" >>"$log" 2>&1 && return
  cat "$log" >&2
  die "apt-get $1 failed (above). Is a source in /etc/apt out of reach? Missing packages: ${missing[*]}"
}
apt_get update
apt_get install -y --no-install-recommends "${missing[@]}"

# Not started now must also mean not started by the next boot.
never_start() {
  local service=$1
  as_root update-rc.d "$service" disable >/dev/null 2>&1 || true
  if command -v systemctl >/dev/null; then
    as_root systemctl --quiet disable "${@/%/.service}" >/dev/null 2>&1 || true
  fi
}
if $broker_is_new; then
  never_start rabbitmq-server epmd
  if command -v systemctl >/dev/null; then as_root systemctl --quiet disable epmd.socket >/dev/null 2>&1 || true; fi
fi
if $nginx_is_new; then never_start nginx; fi
