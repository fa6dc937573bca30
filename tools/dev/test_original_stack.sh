#!/usr/bin/env bash
# Usage: tools/dev/test_original_stack.sh [pytest arguments]
# Runs the tests on the original OpenMMLab packages, in .venv-original, which `make` creates if it isn't there.
# Environment: MMCV_WHEEL (a wheel of mmcv 2.1.0; otherwise pip compiles it, which takes long), PYTHON.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec make test STACK=openmmlab TEST_ARGS="$*"
