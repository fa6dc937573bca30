#!/usr/bin/env bash
# Usage: tools/dist_train.sh CONFIG GPUS [arguments of train.py]
# Environment: PORT (default: a free one); for several machines also NNODES, NODE_RANK, MASTER_ADDR.
set -euo pipefail
if [ $# -lt 2 ]; then sed -n '2,3s/^# //p' "$0" >&2; exit 2; fi
TOOLS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
GPUS=${2}
NNODES=${NNODES:-1}
PYTHON=${PYTHON:-python}
if [ -z "${PORT:-}" ]; then
    if [ "$NNODES" -gt 1 ]; then echo 'set PORT to the same free port on every machine' >&2; exit 2; fi
    PORT=$("$PYTHON" -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
fi
# One thread for each process unless asked for more: torchrun's own default, without its warning.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
PYTHONPATH="$TOOLS/..${PYTHONPATH:+:$PYTHONPATH}" exec "$PYTHON" -m torch.distributed.run \
    --nnodes="$NNODES" \
    --node_rank="${NODE_RANK:-0}" \
    --master_addr="${MASTER_ADDR:-127.0.0.1}" \
    --master_port="$PORT" \
    --nproc_per_node="$GPUS" \
    "$TOOLS/train.py" "$1" --launcher pytorch "${@:3}"
