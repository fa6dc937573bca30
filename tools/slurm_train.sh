#!/usr/bin/env bash
# Usage: tools/slurm_train.sh PARTITION JOB_NAME CONFIG [arguments of train.py]
# Environment: GPUS (default 4), GPUS_PER_NODE, CPUS_PER_TASK (default 5), SRUN_ARGS, PYTHON.
set -euo pipefail
if [ $# -lt 3 ]; then sed -n '2,3s/^# //p' "$0" >&2; exit 2; fi
TOOLS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
GPUS=${GPUS:-4}
GPUS_PER_NODE=${GPUS_PER_NODE:-$((GPUS < 8 ? GPUS : 8))}
read -r -a MORE <<< "${SRUN_ARGS:-}"
PYTHONPATH="$TOOLS/..${PYTHONPATH:+:$PYTHONPATH}" exec srun \
    --partition="$1" \
    --job-name="$2" \
    --gres="gpu:$GPUS_PER_NODE" \
    --ntasks="$GPUS" \
    --ntasks-per-node="$GPUS_PER_NODE" \
    --cpus-per-task="${CPUS_PER_TASK:-5}" \
    --kill-on-bad-exit=1 \
    ${MORE[@]+"${MORE[@]}"} \
    "${PYTHON:-python}" -u "$TOOLS/train.py" "$3" --launcher slurm "${@:4}"
