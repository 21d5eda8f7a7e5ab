# DevStack plugin of nova_perfvm: which function runs in which phase
#
# Sourced by stack.sh, unstack.sh and clean.sh as: plugin.sh MODE [PHASE].
# stack.sh ends at the first command that fails, so every path ends with success.

_PERFVM_XTRACE=$(set +o | grep xtrace)
set +o xtrace

PERFVM_PLUGIN_DIR=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")")
source $PERFVM_PLUGIN_DIR/lib/perfvm

case "$1 ${2:-}" in
    "stack install")
        if perfvm_is_wanted; then
            echo_summary "Installing nova-perfvm"
            perfvm_install
        fi
        ;;
    "stack post-config")
        # It rewrites nova.conf in the background: what is written meanwhile is
        # lost, or what it writes is.
        async_wait configure_neutron_nova
        # What an earlier run left would contradict what this one wants.
        perfvm_undo
        if perfvm_is_wanted; then
            echo_summary "Configuring nova-perfvm"
            perfvm_configure
        fi
        ;;
    "stack extra")
        if perfvm_is_wanted; then
            perfvm_check_filters
            perfvm_create_flavors
            perfvm_set_images
        fi
        ;;
    "stack test-config")
        if perfvm_is_wanted; then
            perfvm_configure_tempest
            perfvm_enroll_known_hosts
        fi
        ;;
    unstack*)
        perfvm_undo
        ;;
    clean*)
        perfvm_undo
        perfvm_uninstall
        ;;
esac

$_PERFVM_XTRACE
