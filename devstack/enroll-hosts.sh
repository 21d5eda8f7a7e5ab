#!/usr/bin/env bash
#
# enroll-hosts.sh [--slots N] [HOST...]
#
# Enroll compute hosts that joined after stack.sh on the controller, where this is
# run: those named, or all.  A host that is enrolled already is compared with the
# policy, and repaired.
#
# --slots N  high-performance VMs that fit each of these hosts; 0 for hosts of
#            general VMs.  Without it Nova's view of their CPUs says.
#
# TOP_DIR is DevStack's directory (~/devstack), PERFVM_POLICY the policy
# (/etc/nova/perfvm.yaml).

set -o errexit

slots=
if [[ "$1" == --slots ]]; then
    slots=$2
    shift 2
fi
if [[ "$1" == -* ]]; then
    sed -n '3,14s/^# \{0,1\}//p' "$0"
    exit 2
fi

TOP_DIR=${TOP_DIR:-$HOME/devstack}
PERFVM_PLUGIN_DIR=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")")
if [[ ! -r $TOP_DIR/openrc ]]; then
    echo "$TOP_DIR has no openrc: set TOP_DIR to DevStack's directory" >&2
    exit 1
fi
source $TOP_DIR/openrc admin admin > /dev/null
source $PERFVM_PLUGIN_DIR/lib/enroll
export PATH="$(get_python_exec_prefix):$PATH"

$TOP_DIR/tools/discover_hosts.sh
if [[ $# -eq 0 ]]; then
    # As an argument of set, a failing command would pass unnoticed.
    hosts=$(perfvm_compute_hosts)
    set -- $hosts
fi
for host in "$@"; do
    perfvm_enroll_host ${PERFVM_POLICY:-/etc/nova/perfvm.yaml} $host $slots
done
