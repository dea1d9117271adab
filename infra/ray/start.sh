#!/bin/bash
# Start Ray on this machine and stay in the foreground; Ctrl-C stops it.
#   infra/ray/start.sh head           on one machine
#   infra/ray/start.sh worker HOST    on all others; HOST is the head's
# Further arguments go to `ray start`. All machines need the same RAY_AUTH_TOKEN: whoever has it can run anything here.
set -euo pipefail
: "${RAY_AUTH_TOKEN:?set it to a secret of yours, the same on all machines; openssl rand -hex 32 makes one}"
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0

case "${1:-}" in
head) exec ray start --block --head --port=6379 --dashboard-host=0.0.0.0 "${@:2}" ;;
worker) exec ray start --block --address="${2:?name the head as in: worker HOST}:6379" "${@:3}" ;;
*)
    echo "usage: $0 head | worker HOST" >&2
    exit 2
    ;;
esac
