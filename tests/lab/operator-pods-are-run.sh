#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The pods of an MPIJob as a user without rights: sshd of that user on port 2222 with the job's own key as host key, an
# image that cannot be written, an ssh_config of the image. hnlaunch without options is the launcher.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 2

# What the image has: a user, and a home that is not writable. What the Operator mounts: a key of root's that all may
# read, which is called id_rsa and is not RSA, and the hostfile.
home=$TMP/mpiuser
mkdir -p "$home/.ssh" "$TMP/etc-mpi"
{
    cat /etc/passwd
    echo "mpiuser:x:4711:4711::$home:/bin/sh"
} >"$TMP/passwd"
ssh-keygen -q -t ecdsa -b 521 -m PEM -N '' -f "$home/.ssh/id_rsa"
cp "$home/.ssh/id_rsa.pub" "$home/.ssh/authorized_keys"
chmod 644 "$home/.ssh"/*
cat >"$LAB_DIR/etc/ssh_config" <<END
Host *
    Port 2222
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
END
cat >"$home/.sshd_config" <<END
PidFile none
HostKey $home/.ssh/id_rsa
AuthorizedKeysFile $home/.ssh/authorized_keys
StrictModes no
UsePAM no
Port 2222
END
chmod 755 "$TMP"
# The user may not reach the folder of the build.
mkdir -m 755 "$TMP/bin"
cp "$LAB_HNLAUNCH" "$LAB_HNLAUNCH"-* "$TMP/bin"
printf 'node001 slots=2\nnode002 slots=2\n' >"$TMP/etc-mpi/hostfile"

as_user=(setpriv --reuid 4711 --regid 4711 --clear-groups env -i "HOME=$home" USER=mpiuser PATH=/usr/bin:/bin)
enter() { # COMMAND...: what joins the namespaces of a node
    "$@" mount --bind "$TMP/passwd" /etc/passwd
}
enter lab run
for node in node001 node002; do
    enter lab exec $node
    lab exec $node "${as_user[@]}" "$(command -v sshd || echo /usr/sbin/sshd)" -f "$home/.sshd_config"
done
launch() { # ARG...
    run "$LAB" run "${as_user[@]}" K_MPI_JOB_ROLE=launcher "OMPI_MCA_orte_default_hostfile=$TMP/etc-mpi/hostfile" \
        "$TMP/bin/hnlaunch" "$@"
}

launch --label none sh -c 'echo "$RANK $(hostname) $(id -u)"'
exits 'the launcher needs no options' 0
is 'ranks are on the workers, as the user' "$(sort "$OUT" | xargs)" '0 node001 4711 1 node001 4711 2 node002 4711 3 node002 4711'
has 'the first line says where hosts came from' "$ERR" '2 nodes, 4 ranks, MPI Operator'
launch sh -c 'exit $((RANK == 3 ? 6 : 0))'
exits "a rank's exit code is the job's" 6
launch plan true
has 'the plan says it, too' "$OUT" 'hosts     MPI Operator'
# A worker with a key of its own is not the job's.
ssh-keygen -q -t ecdsa -N '' -f "$TMP/other"
lab exec node002 pkill -f "$home/.sshd_config"
sed "s,^HostKey.*,HostKey $TMP/other," "$home/.sshd_config" >"$home/.other_config"
chown 4711 "$TMP/other"
lab exec node002 "${as_user[@]}" "$(command -v sshd || echo /usr/sbin/sshd)" -f "$home/.other_config"
launch true
exits 'a worker with another host key is refused: 77' 77
has 'by name' "$ERR" 'error[HN205]: the host key of node002 is not known'
lab_nothing_left 'nothing is left'
done_testing
