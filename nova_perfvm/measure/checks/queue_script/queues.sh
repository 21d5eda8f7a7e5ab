#!/bin/sh
# Let every virtio-net device use all CPUs: enable its queues, put their vectors
# on a CPU each, and let each CPU send over a queue of its own.  What is so already
# stays as it is, so that this may run again at any time.
set -u

SYS=/sys
PROC=/proc
failed=0

fail() {
    echo "perfvm-queues: $*" >&2
    failed=1
}

write() { # TEXT FILE
    if echo "$1" 2>/dev/null >"$2"; then
        echo "perfvm-queues: $1 > $2"
    else
        fail "cannot write $1 to $2"
    fi
}

# The CPUs that run, one a line, of a list such as 0-3,8.
cpus_of() {
    tr ',' '\n' <"$1" | while IFS=- read -r first last; do
        [ -n "$first" ] || continue
        cpu=$first
        while [ "$cpu" -le "${last:-$first}" ]; do
            echo "$cpu"
            cpu=$((cpu + 1))
        done
    done
}

# The mask of CPUs read from standard input, as the kernel wants it: words of 32
# bits, the highest first.  In halves, as some awks print no larger numbers.
mask() {
    awk '
        {
            half = int($1 / 16)
            bits[half] += 2 ^ ($1 % 16)
            if (half > top) top = half
        }
        END {
            if (top % 2 == 0) top++
            for (half = top; half >= 0; half--)
                printf "%04x%s", bits[half], half % 2 || !half ? "" : ","
            print ""
        }'
}

nth_cpu() { # NUMBER, from 1
    echo "$cpus" | sed -n "${1}p"
}

irq_of() { # VECTOR
    awk -v name="$1" '$NF == name { sub(":", "", $1); print $1; exit }' \
        "$PROC/interrupts"
}

# The CPU that the kernel has chosen; old kernels only tell which it may choose.
cpu_of() { # IRQ
    cat "$PROC/irq/$1/effective_affinity_list" 2>/dev/null ||
        cat "$PROC/irq/$1/smp_affinity_list" 2>/dev/null
}

enable_queues() { # NIC CPUS
    counts=$(ethtool -l "$1" 2>/dev/null | awk '/^Combined:/ { print $2 }')
    maximum=$(echo "$counts" | sed -n 1p)
    current=$(echo "$counts" | sed -n 2p)
    case "$maximum.$current" in
        *[!0-9.]* | .* | *.)
            fail "$1: ethtool does not tell its queues: is it installed?"
            return
            ;;
    esac
    wanted=$maximum
    [ "$wanted" -le "$2" ] || wanted=$2
    [ "$current" -lt "$wanted" ] || return 0
    if ethtool -L "$1" combined "$wanted"; then
        echo "perfvm-queues: $1 uses $wanted of $maximum queues"
    else
        fail "$1: cannot enable $wanted queues"
    fi
}

spread_vectors() { # DEVICE DIRECTION QUEUES
    queue=0
    irqs=
    chosen=
    while [ "$queue" -lt "$3" ]; do
        irq=$(irq_of "$1-$2.$queue")
        [ -n "$irq" ] || return 0
        irqs="$irqs $irq"
        chosen="$chosen $(cpu_of "$irq")"
        queue=$((queue + 1))
    done
    # Words, on purpose.
    # shellcheck disable=SC2086
    different=$(printf '%s\n' $chosen | grep -c '^[0-9][0-9]*$')
    # shellcheck disable=SC2086
    distinct=$(printf '%s\n' $chosen | sort -u | wc -l)
    [ "$different" -eq "$3" ] && [ "$distinct" -eq "$3" ] && return 0
    queue=0
    for irq in $irqs; do
        queue=$((queue + 1))
        write "$(nth_cpu "$queue")" "$PROC/irq/$irq/smp_affinity_list"
    done
}

spread_sending() { # NIC QUEUES
    queue=0
    while [ "$queue" -lt "$2" ]; do
        file=$SYS/class/net/$1/queues/tx-$queue/xps_cpus
        [ -e "$file" ] || return 0
        queue=$((queue + 1))
        # A mask that somebody has set stays.
        [ -z "$(tr -d '0,\n' <"$file")" ] || continue
        mine=$(echo "$cpus" | awk -v q="$queue" -v n="$2" 'NR % n == q % n')
        write "$(echo "$mine" | mask)" "$file"
    done
}

cpus=$(cpus_of "$SYS/devices/system/cpu/online")
number=$(echo "$cpus" | wc -l)

for path in "$SYS"/class/net/*; do
    driver=$(readlink "$path/device/driver") || continue
    [ "${driver##*/}" = virtio_net ] || continue
    nic=${path##*/}
    device=$(readlink "$path/device")
    enable_queues "$nic" "$number"
    queues=0
    while [ -d "$path/queues/rx-$queues" ]; do
        queues=$((queues + 1))
    done
    [ "$queues" -gt 1 ] || continue
    # More queues than CPUs have nowhere to go.
    [ "$queues" -le "$number" ] || queues=$number
    spread_vectors "${device##*/}" input "$queues"
    spread_vectors "${device##*/}" output "$queues"
    spread_sending "$nic" "$queues"
done
exit "$failed"
