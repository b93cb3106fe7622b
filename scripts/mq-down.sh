#!/usr/bin/env bash
# Stops the broker that mq-up.sh started, and nothing else. Its data stays, for the next start.
#
#   scripts/mq-down.sh [--help]
#
# Reads the same EAI_MQ_NODE, EAI_MQ_PORT and EAI_MQ_DIR as mq-up.sh. Says so, with status 0, where it is not running.
# Erlang's port mapper (epmd, loopback, idle) is left alone: other nodes on this machine may be using it.
. "$(dirname "$0")/mq-env.sh"

stop_seconds=30   # a node with little to write takes 1 s

(($# == 0)) || { mq_help; [[ $1 == -h || $1 == --help ]] && exit 0; exit 64; }

wait_for_end() {
  local deadline=$((SECONDS + $1))
  until [[ -z $(mq_var_of "$pid" RABBITMQ_PID_FILE) ]]; do
    ((SECONDS < deadline)) || return 1
    sleep 0.1
  done
}

mq_lock
pid=$(mq_pid)
[[ -n $pid ]] || { echo "$node is not running"; exit 0; }

# On SIGTERM RabbitMQ stops as it does for `rabbitmqctl stop`: connections closed, everything durable on disk.
kill -TERM "$pid" 2>/dev/null || true
if wait_for_end "$stop_seconds"; then
  echo "$node is stopped"
else
  kill -KILL "$pid" 2>/dev/null || true
  wait_for_end 5 || mq_die "$node (pid $pid) cannot be killed"
  echo "$node did not stop in $stop_seconds s and was killed" >&2
fi
rm -f -- "$pid_file"
