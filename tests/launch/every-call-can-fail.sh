#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# One system call of head, guard, agent, their children before exec, or the shell of a node fails once or transfers
# less than asked for. Each launch is right, or says why it is not: no hang, no crash, no silent wrong result, and
# nothing is left. tests/lib/call_faults.py has what may fail and how a launch is judged.
#
#   HN_FAULTS=all   every call with each error, and a table (an hour); HN_FAULTS=REGEX: those whose name matches
#   HN_FAULTS=N     another number of tries
#   SEED=N          another sample; the same SEED takes the same tries
faults=${HN_FAULTS-} # the next line unsets it
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# Without sanitizers, which need some of the calls themselves.
export HNLAUNCH=$PLAIN/hnlaunch HELLO=$PLAIN/examples/hello INJECT=$WORKERS/inject WORK=$TMP/tries JOBS=${JOBS:-$(nproc)} SEED=${SEED:-1}

mkdir "$WORK"
[[ -x $HELLO ]] || skip_all "no $HELLO"
"$INJECT" count true 2>"$ERR" || skip_all "cannot hold system calls here: $(tail -n 1 "$ERR")"

# Tries that found a defect: the same call, and what is to be told.
mended=(
    'local/head/symlink/1/ENOSPC right warning[HN805]: the records of this run are incomplete'
    'local/head/symlink/2/ENOSPC right warning[HN907]: cannot make logs/latest lead to'
    'local/head/rename/1/EACCES right warning[HN907]: cannot make logs/latest lead to'
    'local/head/pipe2/1/ENFILE told error[HN908]: hnlaunch cannot go on: Too many open files in system'
    'local/head/epoll_ctl:add/1/ENOMEM told error[HN908]: hnlaunch cannot go on: Cannot allocate memory'
    'local/head/eventfd2/1/ENFILE told error[HN904]: cannot start the event loop: Too many open files in system'
    'local/head/write:file/2/ENOSPC@/err told /err) could not be written: No space left on device'
    'local/head/write:file/13/EDQUOT@events.ndjson told the log folder could not be written'
    'local/agent/pipe2/1/ENFILE told killed by signal 6, Aborted'
    'local/agent/rmdir/1/EBUSY@run/hnlaunch- right'
    'ssh/shell/pipe2/7/ENFILE told the agent cannot run on n1'
    'ssh/shell/unlinkat/1/EIO@.new- unused'
    'ssh/agent/unlinkat/1/EIO@rank.sh right cannot remove all pushed files in'
    'ssh/agent/rmdir/1/EIO@hnlaunch-stage- right cannot remove all pushed files in'
    'ssh/agent/unlink/1/EACCES@.lock right warning[HN314]'
    'ssh/agent/unlink/1/EIO@-0.lock right warning[HN314]'
    'ssh/agent/access/1/EIO@.keep right warning[HN314]'
    "ssh/agent/getdents64:file/1/EIO@hnlaunch-stage-$(id -u)/file right warning[HN314]"
    'ssh/agent/newfstatat/1/EIO@.lock right'
    'ssh/agent/openat/4/EACCES@run/hnlaunch- right cannot look for dumps of the flight recorder in'
    'ssh/agent/openat/5/EACCES@run/hnlaunch- right cannot remove all files of the job in'
    'ssh/head/pread64:file/2/EIO@work/rank.sh told work/rank.sh: Input/output error'
    'ssh/head/openat/1/EMFILE@known_hosts told known_hosts: Too many open files'
    'ssh/head/sendto:socket/1/ENOBUFS@unix told the remote command ended with exit code 1'
    'ssh/head/sendto:socket/5/ENOBUFS@unix told connection lost (end of stream)'
    'ssh/head/epoll_ctl:add/5/ENOMEM told Cannot allocate memory'
)

# One sshd for each launch at a time; what it runs is told in a file.
if type -P sshd >/dev/null || [[ -x /usr/sbin/sshd ]]; then
    . "$ROOT/tests/lib/sshd.sh" || exit 1
    SSH_PORTS=
    for ((slot = 0; slot < JOBS; slot++)); do
        sshd_start "ForceCommand . $WORK/node.$slot"
        trust "$PORT"
        SSH_PORTS+="$PORT "
    done
    write_config 'Host n1' '    HostName 127.0.0.1'
    export SSH_PORTS SSH_CONFIG=$TMP/ssh_config
fi

case $faults in
    '') set -- --sample 200 ;;
    all) set -- --all ;;
    *[!0-9]*) set -- --all "$faults" ;;
    *) set -- --sample "$faults" ;;
esac

tell_results python3 "$ROOT/tests/lib/call_faults.py" --named "${mended[@]}"
tell_results python3 "$ROOT/tests/lib/call_faults.py" "$@"
nothing_left 'nothing is left'
done_testing
