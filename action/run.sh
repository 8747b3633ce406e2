#!/usr/bin/env bash
# The whole of the action where there are no actions, as in GitLab: install, evaluate, comment.
# Inputs are TOUCHSTONE_CI_* variables; ends with the exit code of the evaluation.
set -euo pipefail
action=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export TOUCHSTONE_CI_ENVIRONMENT=${TOUCHSTONE_CI_ENVIRONMENT:-$action/../.venv-ci}
export TOUCHSTONE_CI_REPORT=${TOUCHSTONE_CI_REPORT:-touchstone-report.md}

bash "$action/install.sh"
export TOUCHSTONE_CI_BIN=$TOUCHSTONE_CI_ENVIRONMENT/bin
code=0
"$TOUCHSTONE_CI_BIN/python" "$action/evaluate.py" || code=$?
"$TOUCHSTONE_CI_BIN/python" "$action/comment.py"
exit "$code"
