#!/usr/bin/env bash
# rabbitmqctl for the broker that mq-up.sh started.
#
#   scripts/mq-ctl.sh ARGUMENT…        e.g. scripts/mq-ctl.sh list_queues name messages
#
# Reads the same EAI_MQ_NODE, EAI_MQ_PORT and EAI_MQ_DIR as mq-up.sh. A plain `rabbitmqctl` asks another node
# (rabbit@HOSTNAME) and lacks the cookie of this one.
. "$(dirname "$0")/mq-env.sh"

[[ $# -gt 0 && $1 != -h && $1 != --help ]] || { mq_help; exit $(($# > 0 ? 0 : 64)); }
"${mq_run[@]}" "$bin/rabbitmqctl" "$@"
