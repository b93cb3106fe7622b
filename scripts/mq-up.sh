#!/usr/bin/env bash
# Starts the lab's broker: one RabbitMQ node, on loopback only, without a service manager.
#
#   scripts/mq-up.sh [--help]
#
# Safe to run twice: the second time it says that the node is up. Either way `rabbitmqctl status` is left in
# DIR/status.txt, and the node's data, logs, configuration and cookie are below DIR too.
#
# Environment:
#   EAI_MQ_NODE   the node's name                     (default: rabbit@localhost)
#   EAI_MQ_PORT   AMQP port on 127.0.0.1              (default: 5672)
#   EAI_MQ_DIR    where its files are                 (default: $HOME/eaimw/mq)
#
# Exit status: 0 up; 64 usage; 69 the port or the node's name is taken (said at once), or it did not come up; 74 DIR
# cannot be made.
. "$(dirname "$0")/mq-env.sh"

start_seconds=90   # 5 to 9 s of CPU time on two cores; the rest is for a busy machine

(($# == 0)) || { mq_help; [[ $1 == -h || $1 == --help ]] && exit 0; exit 64; }

# Something accepts there, or lets us hang: only a refused connection means that the port is free.
port_is_free() {
  local status=0
  timeout 1 bash -c "exec 3<>/dev/tcp/127.0.0.1/$1" 2>/dev/null || status=$?
  ((status == 1))
}

holder_of() {
  local line
  line=$(ss -Hltnp "sport = :$1" 2>/dev/null | grep -o 'users:.*' | head -n 1) || true
  echo "${line:-by a process this user may not see}"
}

refuse_if_taken() {
  port_is_free "$port" || mq_die "port $port is taken: $(holder_of "$port"). Stop that, or set EAI_MQ_PORT."
  # epmd knows the part before the @ only: rabbit@localhost and a packaged rabbit@$(hostname) exclude each other.
  if "${mq_run[@]}" epmd -names 2>/dev/null | grep -q "^name ${node%@*} at port "; then
    mq_die "a node named ${node%@*} is registered with epmd already. Stop it, or set EAI_MQ_NODE."
  fi
}

# Erlang would look for epmd there, and its own message on this is fifty lines long. (--no-addrconfig: a machine without
# a network has a localhost, too.)
require_loopback_host() {
  [[ $(getent --no-addrconfig ahostsv4 "${node#*@}") == 127.* ]] ||
    mq_die "${node#*@} is not 127.0.0.1 on this machine: /etc/hosts should say '127.0.0.1 localhost'"
}

# Beside the AMQP port, as RabbitMQ does itself (5672 → 25672); the next free one where that is taken.
distribution_port() {
  local first=$((port <= 45000 ? port + 20000 : port - 20000)) candidate
  for ((candidate = first; candidate < first + 20; candidate++)); do
    if port_is_free "$candidate"; then echo "$candidate"; return; fi
  done
  mq_die "no free port for the Erlang distribution in $first–$((first + 19))"
}

write_files() {
  mkdir -p -- "$dir/log" "$dir/mnesia"
  # Made by us, because the one Erlang makes up is guessable.
  [[ -s $dir/.erlang.cookie ]] || head -c 32 /dev/urandom | base64 >"$dir/.erlang.cookie"
  chmod 600 "$dir/.erlang.cookie"
  echo '[].' >"$dir/enabled_plugins"
  echo 'vm_memory_high_watermark.absolute = 512MiB' >"$dir/rabbitmq.conf"
}

# RABBITMQ_ALLOW_INPUT makes the start script exec Erlang instead of waiting for it as a parent: $started is the node.
start() {
  local distribution
  distribution=$(distribution_port)
  "${mq_run[@]}" setsid env -C "$dir" RABBITMQ_DIST_PORT="$distribution" RABBITMQ_ALLOW_INPUT=1 \
    "$bin/rabbitmq-server" -noinput </dev/null >"$dir/log/startup.log" 2>&1 9>&- &
  started=$!
}

give_up() {
  tail -n 15 "$dir/log/startup.log" >&2 || true
  kill -KILL "$started" 2>/dev/null || true
  mq_die "$node $1; see $dir/log"
}

# The node is in a session of its own: a Ctrl-C that ends this script would leave it half started, with no pid file yet.
wait_until_ready() {
  local deadline=$((SECONDS + start_seconds))
  trap 'give_up "was interrupted while starting"' INT TERM
  while port_is_free "$port" || [[ -z $(mq_pid) ]]; do
    kill -0 "$started" 2>/dev/null || give_up "ended while starting"
    ((SECONDS < deadline)) || give_up "was not ready in $start_seconds s"
    sleep 0.1
  done
  "${mq_run[@]}" "$bin/rabbitmqctl" --quiet await_startup --timeout 30 9>&- ||
    give_up "opened its port but did not finish starting"
  trap - INT TERM
}

# rabbitmqctl colours its headings even in a file.
write_status() {
  "${mq_run[@]}" timeout 30 "$bin/rabbitmqctl" status 9>&- >"$dir/status.new" ||
    mq_die "$node runs (pid $(mq_pid)) but does not answer rabbitmqctl"
  sed 's/\x1b\[[0-9;]*m//g' "$dir/status.new" >"$dir/status.txt"
  rm -f -- "$dir/status.new"
  grep -q 'Memory high watermark setting: 0\.5369 gb' "$dir/status.txt" ||
    mq_die "$node runs with another memory watermark than 512MiB; see $dir/status.txt"
}

# An epmd that was there before us is not ours to restart, but whoever promised loopback only has to say it.
warn_of_open_epmd() {
  if ss -Hltn 'sport = :4369' 2>/dev/null | awk '{print $4}' | grep -qvE '^(127\.|\[::1\])'; then
    echo "mq-up.sh: warning: an epmd that was already running listens beyond loopback (port 4369)" >&2
  fi
}

# What to type before a script's name to mean this node again.
prefix() {
  local name
  for name in EAI_MQ_NODE EAI_MQ_PORT EAI_MQ_DIR; do
    if [[ -n ${!name:-} ]]; then printf '%s=%q ' "$name" "${!name}"; fi
  done
}

here=$(dirname "$0")
mq_lock
pid=$(mq_pid)
if [[ -n $pid ]]; then
  actual=$(mq_var_of "$pid" RABBITMQ_NODE_PORT)
  [[ $actual == "$port" ]] || mq_die "$node is up already, on port $actual and not $port"
  word="is up already"
else
  refuse_if_taken
  require_loopback_host
  write_files
  start
  wait_until_ready
  pid=$(mq_pid)
  word="is up"
fi
write_status
warn_of_open_epmd
cat <<END
$node $word (pid $pid)
  AMQP    amqp://guest:guest@127.0.0.1:$port/%2F
  status  $dir/status.txt
  ask     $(prefix)$here/mq-ctl.sh list_queues
  stop    $(prefix)$here/mq-down.sh
END
