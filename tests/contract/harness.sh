#!/bin/bash
#
# SPDX-License-Identifier: Apache-2.0
#
# harness.sh stack|unstack|clean|settings
#
# Does what the script of that name does around its plugins, on files below
# CONTRACT_SCRATCH: with the functions of the DevStack in DEVSTACK_DIR, or
# without one with doubles.  The plugin is that of CONTRACT_PROJECT.
#
# It reads localrc and top/local.conf of the scratch directory, and other.sh,
# which stands for what comes before the plugin in phase post-config.
# It leaves "leaks": what a phase changed in the shell that it must not; and "races":
# that it changed a file which something in the background was changing, too.

mode=$1
here=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")")

# What stackrc and stack.sh set before
# ------------------------------------

TOP_DIR=$CONTRACT_SCRATCH/top
DEST=$CONTRACT_SCRATCH/dest
DATA_DIR=$DEST/data
FILES=$TOP_DIR/files
STACK_USER=$(id -un)
ENABLED_SERVICES=key,mysql,n-api,n-cpu,n-sch,n-cond,g-api,placement-api
ENABLED_SERVICES+=,tempest
DISABLED_SERVICES=
GLOBAL_VENV=True
DEVSTACK_VENV=$DATA_DIR/venv
DEVSTACK_PARALLEL=True
REQUIREMENTS_DIR=
OFFLINE=False
VIRT_DRIVER=libvirt
LIBVIRT_TYPE=qemu
CELLSV2_SETUP=singleconductor
NOVNC_FROM_PACKAGE=True
NOVA_VNC_ENABLED=False
SERVICE_PROTOCOL=http
SERVICE_HOST=127.0.0.1
SERVICE_LISTEN_ADDRESS=127.0.0.1
SERVICE_IP_VERSION=4
HOST_IP=127.0.0.1
LOCAL_HOSTNAME=host1
DEFAULT_IMAGE_NAME=cirros-0.6.3-x86_64-disk
PYTHON3_VERSION=3
os_PACKAGE=deb os_VENDOR=Debian os_RELEASE=12 os_CODENAME=bookworm
mkdir -p $TOP_DIR $DEST/async $DEVSTACK_VENV/bin
export CONTRACT_SCRATCH
ln -sf $here/commands/* $DEVSTACK_VENV/bin
PATH=$DEVSTACK_VENV/bin:$PATH

if [[ -n "$DEVSTACK_DIR" ]]; then
    ln -sfn $DEVSTACK_DIR/lib $TOP_DIR/lib
    source $DEVSTACK_DIR/functions
else
    source $here/doubles/functions
fi
ln -sfn $CONTRACT_PROJECT $DEST/nova-perfvm
enable_plugin nova-perfvm https://example.org/nova-perfvm main
if [[ -e $CONTRACT_SCRATCH/localrc ]]; then
    source $CONTRACT_SCRATCH/localrc
fi
if [[ -n "$DEVSTACK_DIR" ]]; then
    source $TOP_DIR/lib/nova
    source $TOP_DIR/lib/placement
fi

# Of systemd and the message bus nothing here
function run_process {
    :
}
function iniset_rpc_backend {
    :
}

# lib/nova knows /etc/nova only.
NOVA_CONF_DIR=$CONTRACT_SCRATCH/etc/nova
NOVA_CONF=$NOVA_CONF_DIR/nova.conf
NOVA_CPU_CONF=$NOVA_CONF_DIR/nova-cpu.conf
NOVA_FAKE_CONF=$NOVA_CONF_DIR/nova-fake.conf
PLACEMENT_CONF_DIR=$CONTRACT_SCRATCH/etc/placement
PLACEMENT_CONF=$PLACEMENT_CONF_DIR/placement.conf
TEMPEST_CONFIG=$CONTRACT_SCRATCH/tempest.conf
TEMPEST_DIR=$DEST/tempest
mkdir -p $NOVA_CONF_DIR $PLACEMENT_CONF_DIR

# What a phase must leave as it was
# ---------------------------------

function harness_shell {
    echo "directory $PWD"
    echo "IFS $(printf '%q' "$IFS")"
    umask
    set +o
    shopt -p
    trap -p
}

function harness_names {
    declare -F | sed 's/declare -f[x ]* /function /'
    compgen -v | sed 's/^/variable /'
}

# Where a test looks for what the plugin did between two phases
function harness_keep {
    rm -rf $CONTRACT_SCRATCH/after-$1
    cp -r $CONTRACT_SCRATCH/etc $CONTRACT_SCRATCH/after-$1
}

# harness_phase MODE [PHASE]
function harness_phase {
    local shell="" shell_after="" names="" names_after=""
    shell=$(harness_shell)
    names=$(harness_names)
    run_phase "$@"
    shell_after=$(harness_shell)
    names_after=$(harness_names)
    diff <(echo "$shell") <(echo "$shell_after") | sed -n "s/^[<>]/$*:/p" \
        >> $CONTRACT_SCRATCH/leaks || true
    # What DevStack's own functions set is none of the plugin's.
    # All but DevStack's own
    diff <(echo "$names") <(echo "$names_after") | sed -n 's/^> //p' |
        grep -Ev -e '^function perfvm_' -e '^variable _?(PERFVM|PIP|TIME)_' \
        -e '^variable (name|v)$' |
        sed "s/^/$*: new /" >> $CONTRACT_SCRATCH/leaks || true
    echo "$*" >> $CONTRACT_SCRATCH/phases
}

# The scripts
# -----------

function harness_stack {
    rm -f $NOVA_CONF $CONTRACT_SCRATCH/discovered
    iniset $NOVA_CONF DEFAULT debug True
    iniset $NOVA_CONF filter_scheduler enabled_filters "$NOVA_FILTERS"
    iniset $NOVA_CONF database connection mysql://nova
    rm -f $PLACEMENT_CONF
    iniset $PLACEMENT_CONF placement_database connection mysql://placement
    if [[ -e $CONTRACT_SCRATCH/other.sh ]]; then
        source $CONTRACT_SCRATCH/other.sh
    fi
    harness_keep nothing

    harness_phase stack pre-install
    harness_phase stack install
    HARNESS_NOVA_CONF=$(< $NOVA_CONF)
    rm -f $CONTRACT_SCRATCH/awaited
    async_runfunc configure_neutron_nova
    harness_phase stack post-config
    harness_keep post-config
    if [[ "$CONTRACT_UNTIL" == post-config ]]; then
        async_wait configure_neutron_nova
        start_nova_compute
        return 0
    fi
    merge_config_group $TOP_DIR/local.conf post-config
    async_wait configure_neutron_nova
    if is_service_enabled n-cpu; then
        start_nova_compute
    fi
    harness_phase stack extra
    touch $CONTRACT_SCRATCH/discovered
    if is_service_enabled tempest; then
        rm -f $TEMPEST_CONFIG
        iniset $TEMPEST_CONFIG compute flavor_ref 42
        iniset $TEMPEST_CONFIG compute-feature-enabled \
            scheduler_enabled_filters $NOVA_FILTERS
        # Where install_tempest_plugins puts what TEMPEST_PLUGINS names
        mkdir -p $TEMPEST_DIR/.tox/tempest/bin
        ln -sf $here/commands/pip $TEMPEST_DIR/.tox/tempest/bin
    fi
    harness_phase stack test-config
    harness_phase stack a-phase-to-come
    harness_phase a-mode-to-come
}

# The real one reads the file, edits what it has read, and writes that.  This one
# writes as late as it can: when somebody waits for it.  Whoever wrote before has
# lost that, and may have made the real one lose what it wrote.
function configure_neutron_nova {
    local try
    for try in {1..600}; do
        if [[ -e $CONTRACT_SCRATCH/awaited ]]; then
            break
        fi
        sleep 0.1
    done
    if [[ "$(< $NOVA_CONF)" != "$HARNESS_NOVA_CONF" ]]; then
        echo "nova.conf was changed during configure_neutron_nova" \
            >> $CONTRACT_SCRATCH/races
    fi
    echo "$HARNESS_NOVA_CONF" > $NOVA_CONF
    iniset $NOVA_CONF neutron region_name RegionOne
}

eval "harness_$(declare -f async_wait)"
function async_wait {
    touch $CONTRACT_SCRATCH/awaited
    harness_async_wait "$@"
}

trap 'echo "ended by: $BASH_COMMAND" >&2' ERR
set -o errexit
cd $TOP_DIR

harness_phase source
case $mode in
    settings)
        # As a second time in one shell
        harness_phase source
        ;;
    stack)
        harness_stack
        ;;
    unstack|clean)
        harness_phase $mode
        ;;
esac
echo "$NOVA_FILTERS" > $CONTRACT_SCRATCH/filters
echo "$ENABLED_SERVICES" > $CONTRACT_SCRATCH/services
