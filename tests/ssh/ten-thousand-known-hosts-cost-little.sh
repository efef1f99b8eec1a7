#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A known_hosts file of 10,000 hashed names (HashKnownHosts, Debian's default): each line must be tried
# with each name. libssh alone takes 300 ms of processor time per node for that.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

PROBE=$PLAIN/tests/lib/link_probe
[[ -x $PROBE ]] || skip_all "no $PROBE"
NODES=16
sshd_start
key=$(sshd_key)

# Names node1..16 with the server's key behind LINES hashed lines of others.
hashed() { # LINES FILE
    python3 - "$1" "$NODES" "$key" >"$2" <<'END'
import base64, hashlib, hmac, os, struct, sys
lines, nodes, key = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
def line(name, key):
    salt = os.urandom(20)
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    print("|1|%s|%s %s" % (base64.b64encode(salt).decode(), base64.b64encode(digest).decode(), key))
for i in range(lines):
    blob = b"".join(struct.pack(">I", len(s)) + s for s in (b"ssh-ed25519", os.urandom(32)))
    line("other%d" % i, "ssh-ed25519 " + base64.b64encode(blob).decode())
for i in range(1, nodes + 1):
    line("node%d" % i, key)
END
}

config() { # NODES: those that the client knows
    local i blocks=()
    for ((i = 1; i <= $1; i++)); do
        blocks+=("Host node$i" '    HostName 127.0.0.1' "    Port $PORT" "    HostKeyAlias node$i")
    done
    write_config "${blocks[@]}"
}

# The processor time of logins on so many nodes, in milliseconds: the least of three.
cost() { # NODES
    python3 - "$PROBE" -F "$TMP/ssh_config" -c true ssh $(printf 'node%d ' $(seq "$1")) <<'END'
import os, subprocess, sys
def once():
    with subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        _, status, use = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    return (use.ru_utime + use.ru_stime) * 1000 if p.returncode == 0 else sys.exit("failed")
print(round(min(once() for _ in range(3))))
END
}

config "$NODES"
hashed 0 "$KNOWN"
few_one=$(cost 1) few_all=$(cost "$NODES")
hashed 10000 "$KNOWN"
many_one=$(cost 1) many_all=$(cost "$NODES")
ok 'all four ran' test "${few_all:-0}" -gt 0 -a "${many_all:-0}" -gt 0
echo "# $few_one and $few_all ms for 1 and $NODES nodes; with 10,000 lines more $many_one and $many_all ms"
extra=$((((many_all - few_all) - (many_one - few_one)) * 1000 / (NODES - 1)))
echo "# $((many_one - few_one)) ms for reading them, $extra us for each further node"
# 1 ms is what the measured machine needs; 300 is what must not come back.
ok 'a node costs far less than what libssh would take' test "$extra" -le 10000
ok 'and so does reading them' test $((many_one - few_one)) -le 300

done_testing
