# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
#
# A real Grid Engine on the lab's nodes: source after lab.sh. Skips the script when it cannot be fetched.
#
#   lab_up 4; sge_up          sge_qmaster on the lab's head, sge_execd on its nodes, with 4 slots each
#   lab_run qsub -sync y -pe hn 6 FILE    the script FILE runs on the first node of a job of 6 slots, 2 on each node;
#                             the parallel environment hn has control_slaves
#   sge_empty                 succeeds when there is no job and no process of a job on any node (for wait_for)
#   sge_nothing_left NAME     a test of that
#
# The programs have the path of their plug-ins built in: the nodes see the kit's /usr/lib laid over that of the machine,
# in their own mount namespaces. All else is in $TMP/sge and ends with the script. Jobs run as root.

SGE_KIT_ROOT=$(timeout 150 bash "$ROOT/tests/lib/sge_kit.sh" \
    "${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests/sge" 2>"$TMP/sge.log") ||
    skip_all "no Grid Engine: $(tail -n 1 "$TMP/sge.log" | cut -c1-160)"
SGE=$TMP/sge

sge_write_cell() {
    local folder arch
    arch=$("$SGE_KIT_ROOT/usr/share/gridengine/util/arch")
    mkdir -p "$SGE/root/default/common" "$SGE/root/bin" "$SGE/root/lib" "$SGE/root/utilbin" "$SGE/qmaster/job_scripts" "$SGE/execd"
    for folder in bin lib utilbin; do
        ln -s /usr/lib/gridengine "$SGE/root/$folder/$arch"
    done
    ln -s "$SGE_KIT_ROOT/usr/share/gridengine/util" "$SGE/root/util"
    echo head >"$SGE/root/default/common/act_qmaster"
    cat >"$SGE/root/default/common/bootstrap" <<END
admin_user        none
default_domain    none
ignore_fqdn       true
spooling_method   classic
spooling_lib      libspoolc
spooling_params   $SGE/root/default/common;$SGE/qmaster
binary_path       $SGE/root/bin
qmaster_spool_dir $SGE/qmaster
security_mode     none
listener_threads  2
worker_threads    2
scheduler_threads 1
END
    sed -e "s#^execd_spool_dir.*#execd_spool_dir $SGE/execd#; s#^gid_range.*#gid_range 20000-20100#; s#^min_[ug]id.*##" \
        "$SGE_KIT_ROOT/usr/share/gridengine/default-configuration" >"$SGE/configuration"
    cat >"$SGE/pe" <<END
pe_name            hn
slots              999
user_lists         NONE
xuser_lists        NONE
start_proc_args    NONE
stop_proc_args     NONE
allocation_rule    2
control_slaves     TRUE
job_is_first_task  FALSE
urgency_slots      min
accounting_summary FALSE
qsort_args         NONE
END
    # All limits of a queue must be there.
    {
        printf '%s\n' 'qname all.q' "hostlist $(lab hosts plain | paste -sd' ')" 'qtype BATCH INTERACTIVE' \
            'pe_list hn' 'slots 4' 'shell /bin/sh' 'shell_start_mode unix_behavior' 'tmpdir /tmp' 'seq_no 0' \
            'nsuspend 1' 'suspend_interval 00:05:00' 'priority 0' 'min_cpu_interval 00:05:00' 'rerun FALSE' \
            'processors UNDEFINED' 'notify 00:00:60' 'initial_state default'
        printf '%s NONE\n' load_thresholds suspend_thresholds ckpt_list prolog epilog starter_method suspend_method \
            resume_method terminate_method owner_list user_lists xuser_lists subordinate_list complex_values \
            projects xprojects calendar
        printf '%s INFINITY\n' {s,h}_{rt,cpu,fsize,data,stack,core,rss,vmem}
    } >"$SGE/queue"
}

sge_daemon() { # NODE PROGRAM
    env SGE_ND=1 "$LAB" exec "$1" "/usr/lib/gridengine/$2" </dev/null >"$SGE/$2.$1.out" 2>&1 &
    disown $!
}

sge_make() { lab run env LD_LIBRARY_PATH=/usr/lib/gridengine "/usr/lib/gridengine/$1" "${@:2}" >>"$SGE/make.out" 2>&1 || sge_did_not_start; }

sge_up() {
    local node resources=$SGE_KIT_ROOT/usr/share/gridengine/util/resources
    export SGE_ROOT=$SGE/root SGE_CELL=default SGE_QMASTER_PORT=6444 SGE_EXECD_PORT=6445 SGE_CLUSTER_NAME=lab
    export PATH=$PATH:/usr/lib/gridengine XDG_CACHE_HOME=$TMP/cache
    sge_write_cell
    for node in head $(lab hosts plain); do
        lab exec "$node" mount -t overlay -o "lowerdir=$SGE_KIT_ROOT/usr/lib:/usr/lib" overlay /usr/lib 2>/dev/null ||
            skip_all 'no overlay file system here'
    done
    sge_make spoolinit classic libspoolc "$SGE/root/default/common;$SGE/qmaster" init
    sge_make spooldefaults.bin configuration "$SGE/configuration"
    sge_make spooldefaults.bin complexes "$resources/centry"
    sge_make spooldefaults.bin usersets "$resources/usersets"
    sge_make spooldefaults.bin managers root
    sge_daemon head sge_qmaster
    wait_for lab run qconf -sconf || sge_did_not_start
    lab run qconf -as head >>"$SGE/make.out" 2>&1
    for node in $(lab hosts plain); do
        sge_make qconf -ah "$node"
        sge_daemon "$node" sge_execd
    done
    wait_for sge_sees_all || sge_did_not_start
    # Jobs need not wait for the next round of the scheduler.
    lab run qconf -ssconf | sed 's/^schedule_interval.*/schedule_interval 0:0:1/; s/^\(flush_[a-z]*_sec\).*/\1 1/' >"$SGE/scheduler"
    sge_make qconf -Msconf "$SGE/scheduler"
    sge_make qconf -Ap "$SGE/pe"
    sge_make qconf -Aq "$SGE/queue"
}

# Hosts say their kind with their first load report.
sge_sees_all() { [[ $(lab run qhost 2>/dev/null | grep -c ' lx-') == $(lab hosts plain | wc -l) ]]; }

sge_did_not_start() {
    local log
    for log in "$SGE"/*.out "$SGE"/*/messages "$SGE"/execd/*/messages; do
        say_file "${log##*/}" "$log"
    done
    fail 'Grid Engine starts'
    done_testing
}

sge_processes() { lab ps | grep -vE 'sge_(qmaster|execd)'; }

sge_empty() { [[ -z $(lab run qstat)$(sge_processes) ]]; }

sge_nothing_left() { # NAME
    if wait_for sge_empty; then
        pass "$1"
    else
        fail "$1" "$(lab run qstat)"$'\n'"$(sge_processes)"
    fi
}
