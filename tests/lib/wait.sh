# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Waiting for a state instead of sleeping, for tap.sh and tests/lab/lab; waiting.py and wait_for.h are its twins.
#
#   wait_for CONDITION...     polls a command until it succeeds; fails after $WAIT seconds (default 60), scaled
#   pause_of MS               sets PAUSE, the seconds between two polls of what has been waited for so long: a sixteenth
#                             of that, from 0.03 to 0.12, since polls cost the processor and nobody notices a sixteenth
#   scaled SECONDS            that many seconds on a quiet machine, in whole seconds for the load of now
#
# The load is the number of processes per processor that want to run: 1 on a quiet machine, 3 when two tests run
# beside two busy loops on two processors and each of them starts another process.

WAIT_CPUS=$(nproc)

# Sets SLOWNESS: how many times as long as on a quiet machine a program may take now.
measure_load() {
    local average running
    read -r average _ _ running _ <"${LOADAVG:-/proc/loadavg}"
    average=$((10#${average/./})) running=$((${running%/*} * 100))
    ((average > running)) || average=$running
    SLOWNESS=$(((average + WAIT_CPUS * 100 - 1) / (WAIT_CPUS * 100)))
    ((SLOWNESS > 0)) || SLOWNESS=1
}

scaled() { # SECONDS
    local SLOWNESS
    measure_load
    printf '%d\n' $(($1 * SLOWNESS))
}

pause_of() { # MS
    PAUSE=$(($1 / 16 < 30 ? 30 : $1 / 16 > 120 ? 120 : $1 / 16))
    printf -v PAUSE '0.%03d' "$PAUSE"
}

# The variables have long names: a command that is a function of the script sees them. The load is looked at when the
# limit for a quiet machine is over, and again with each look after that.
wait_for() { # CONDITION...
    local wait_log=${TMP:-/tmp}/wait.$BASHPID wait_begin=${EPOCHREALTIME/[.,]/} wait_ms PAUSE SLOWNESS=1
    until "$@" >"$wait_log" 2>&1; do
        wait_ms=$(((${EPOCHREALTIME/[.,]/} - wait_begin) / 1000))
        if ((wait_ms >= ${WAIT:-60} * 1000 * SLOWNESS)); then
            measure_load
            if ((wait_ms >= ${WAIT:-60} * 1000 * SLOWNESS)); then
                {
                    printf '# waited %d s (%d s on a quiet machine, load %d) in vain for: %s\n' \
                        $((wait_ms / 1000)) "${WAIT:-60}" "$SLOWNESS" "$*"
                    tail -n 20 "$wait_log" 2>/dev/null | sed 's/^/# its last words: /'
                } >&2
                rm -f "$wait_log"
                return 1
            fi
        fi
        pause_of "$wait_ms"
        sleep "$PAUSE"
    done
    rm -f "$wait_log"
}
