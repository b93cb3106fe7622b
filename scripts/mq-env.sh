# shellcheck shell=bash
# Sourced by mq-up.sh, mq-down.sh and mq-ctl.sh: which node they mean, and the environment it runs in.
set -euo pipefail

mq_die() { printf '%s: %s\n' "${0##*/}" "$1" >&2; exit "${2:-69}"; }
# The comment at the top of the calling script is its help.
mq_help() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; }

home=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
node=${EAI_MQ_NODE:-rabbit@localhost}
port=${EAI_MQ_PORT:-5672}
dir=$(realpath -m -- "${EAI_MQ_DIR:-$home/eaimw/mq}")
bin=/usr/lib/rabbitmq/bin
pid_file=$dir/broker.pid

[[ $node =~ ^[A-Za-z0-9_-]+@[A-Za-z0-9-]+$ ]] || mq_die "EAI_MQ_NODE must be NAME@HOST, not '$node'" 64
[[ $port =~ ^[1-9][0-9]{0,4}$ && $port -le 65535 ]] || mq_die "EAI_MQ_PORT must be a port, not '$port'" 64
# In such a folder the node starts, but its disk monitor and `rabbitmqctl status` fail (3.10).
[[ $dir != *[[:space:]]* ]] || mq_die "EAI_MQ_DIR must have no white space: '$dir'" 64
[[ -x $bin/rabbitmq-server ]] || mq_die "no RabbitMQ here: run scripts/install-deps.sh test"

# What a RabbitMQ program is started with: an environment of its own, so that neither /etc/rabbitmq nor a RABBITMQ_*,
# ERL_* or proxy variable of the caller reaches the node. $bin is called directly because Debian's wrappers in /usr/sbin
# insist on being root and su to user rabbitmq, who can't read below $HOME.
#   HOME        makes Erlang take its cookie from $dir, so it is on nobody's command line
#   ERL_AFLAGS  binds the distribution to loopback for all of them: node, rabbitmqctl, and what starts epmd
# Files named here that do not exist are simply not read. It is an array and not a function, so that a command started
# in the background has $! for its own pid.
# shellcheck disable=SC2034  # used by the scripts that source this
mq_run=(env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "HOME=$dir"
  ERL_EPMD_ADDRESS=127.0.0.1
  ERL_AFLAGS='-kernel inet_dist_use_interface {127,0,0,1}'
  "ERL_CRASH_DUMP=$dir/log/erl_crash.dump"
  "RABBITMQ_NODENAME=$node"
  RABBITMQ_NODE_IP_ADDRESS=127.0.0.1
  "RABBITMQ_NODE_PORT=$port"
  "RABBITMQ_CONF_ENV_FILE=$dir/rabbitmq-env.conf"
  "RABBITMQ_CONFIG_FILE=$dir/rabbitmq.conf"
  "RABBITMQ_CONFIG_FILES=$dir/conf.d"
  "RABBITMQ_ADVANCED_CONFIG_FILE=$dir/advanced.config"
  "RABBITMQ_ENABLED_PLUGINS_FILE=$dir/enabled_plugins"
  "RABBITMQ_MNESIA_BASE=$dir/mnesia"
  "RABBITMQ_LOG_BASE=$dir/log"
  "RABBITMQ_PID_FILE=$pid_file")

# One variable of a process's environment, nothing where there is no such process (or only its zombie).
mq_var_of() {
  { tr '\0' '\n' <"/proc/$1/environ"; } 2>/dev/null | sed -n "s/^$2=//p"
}

# The pid of the node that runs in $dir, empty when none does. A pid file alone proves nothing: after a crash the
# number may belong to anybody, so the process must have been started with this very pid file.
mq_pid() {
  local pid
  [[ -s $pid_file ]] && pid=$(<"$pid_file") && [[ $pid =~ ^[0-9]+$ ]] || return 0
  [[ $(mq_var_of "$pid" RABBITMQ_PID_FILE) == "$pid_file" ]] || return 0
  [[ $(mq_var_of "$pid" RABBITMQ_NODENAME) == "$node" ]] ||
    mq_die "$dir is in use by node $(mq_var_of "$pid" RABBITMQ_NODENAME) (pid $pid), not by $node"
  echo "$pid"
}

# One start or stop at a time. The lock is on descriptor 9; whatever is left running must not inherit it.
mq_lock() {
  umask 077
  mkdir -p -- "$dir" || mq_die "cannot make $dir" 74
  exec 9>"$dir/lock"
  flock -w 150 9 || mq_die "another mq-up.sh or mq-down.sh has held $dir/lock for 150 s"
}
