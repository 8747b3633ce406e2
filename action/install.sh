#!/usr/bin/env bash
# Installs Touchstone into an environment of its own and writes where its programs are to the step's output `bin`.
# TOUCHSTONE_CI_PYTHON: the Python to use. TOUCHSTONE_CI_VERSION: a requirement to install instead of this checkout.
# TOUCHSTONE_CI_ENVIRONMENT: where to make the environment.
set -euo pipefail
# Exit code 1 would mean that the gate failed.
trap 'echo "error: Touchstone cannot be installed; see above" >&2; exit 2' ERR

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
environment=${TOUCHSTONE_CI_ENVIRONMENT:-${RUNNER_TEMP:-$checkout}/.venv-ci}

"${TOUCHSTONE_CI_PYTHON:-python3}" -m venv "$environment"
"$environment/bin/pip" install --quiet --disable-pip-version-check 'uv>=0.13,<0.14'
install=("$environment/bin/uv" pip install --quiet --python "$environment/bin/python")
if [ -n "${TOUCHSTONE_CI_VERSION:-}" ]; then
    "${install[@]}" -- "$TOUCHSTONE_CI_VERSION"
else
    # The versions and hashes that the tests ran with; what only the tests need is left out.
    "${install[@]}" --constraint "$checkout/requirements.lock" -- "$checkout"
fi
"$environment/bin/touchstone" --version
if [ -n "${GITHUB_OUTPUT:-}" ]; then
    echo "bin=$environment/bin" >>"$GITHUB_OUTPUT"
fi
