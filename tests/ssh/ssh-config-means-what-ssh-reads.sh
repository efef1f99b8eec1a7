#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The reader of ssh_config beside ssh -G: for each text both find the same settings, or both refuse it; a refusal names
# file and line. What hnlaunch does not obey is told, or refused when the login would change, again with file and line.
. "$(dirname "$0")/../lib/tap.sh"

type -P ssh >/dev/null || skip_all 'no ssh here'
unset SSH_AUTH_SOCK
LOOK=$BUILD/tests/lib/ssh_config_probe
[[ -x $LOOK ]] || skip_all "no $LOOK"
version=$(ssh -V 2>&1 | sed -n 's/^OpenSSH_\([0-9]*\).*/\1/p')
((${version:-0} >= 9)) || skip_all 'versions of ssh before 9 read some lines otherwise'
file=$TMP/text
unset UNSET
export SET=value

# What both print in the same words. Without an IdentityFile, ssh prints the names that it tries.
common='hostname|user|port|addressfamily|hostkeyalias|bindaddress|bindinterface|identityagent|identitiesonly'
common+='|gssapiauthentication|pubkeyauthentication|identityfile|certificatefile|proxycommand|proxyjump'

write() { # TEXT
    # shellcheck disable=SC2059
    printf "$1\n" >"$file"
}

ask_ssh() { # HOST
    ssh -G -F "$file" "$1" >"$TMP/ssh.all" 2>"$TMP/ssh.err" </dev/null || return 1
    grep -E "^($common) " "$TMP/ssh.all" | grep -vE '^identityfile ~/.ssh/id_|^[a-z]* none$' |
        sed 's/^\(pubkeyauthentication\|identitiesonly\|gssapiauthentication\) \(true\|unbound\)$/\1 yes/' | sort >"$TMP/ssh.out"
}

ask_hnlaunch() { # HOST
    "$LOOK" "$file" "$1" >"$TMP/all" 2>"$TMP/err" </dev/null || return 1
    grep -E "^($common) " "$TMP/all" | grep -vE '^[a-z]* none$' |
        sed 's/^\(pubkeyauthentication\|identitiesonly\|gssapiauthentication\) \(true\|unbound\)$/\1 yes/' | sort >"$TMP/out"
}

refusal_names() { grep -qE "^error $file: line $1: ." "$TMP/all"; }

both() { # TEXT [HOST [LINE]]: the settings, or both refuse, hnlaunch with LINE
    local name=${1//\\n/; } by_ssh=0 by_us=0
    write "$1"
    ask_ssh "${2-node1}" || by_ssh=1
    ask_hnlaunch "${2-node1}" || by_us=1
    is "${2-node1}: $name: refused" "$by_us" "$by_ssh"
    if ((by_us)); then
        ok "$name: file and line" refusal_names "${3-[0-9]+}"
        grep -q '^error' "$TMP/all" && echo "# $(cat "$TMP/all")"
    elif ((!by_ssh)); then
        is "${2-node1}: $name" "$(cat "$TMP/out")" "$(cat "$TMP/ssh.out")"
    fi
}

finds() { # TEXT LINE...: what newer versions of ssh than the one here find
    local name=${1//\\n/; } line
    write "$1"
    ok "$name" ask_hnlaunch node1
    shift
    for line in "$@"; do has "$name" "$TMP/all" "$line"; done
}

refused() { # TEXT PART [LINE]: by hnlaunch alone
    local name=${1//\\n/; }
    write "$1"
    ok "$name: refused" not ask_hnlaunch node1
    ok "$name: file and line" refusal_names "${3-1}"
    has "$name" "$TMP/all" "$2"
}

told() { # TEXT KEYWORD [LINE]: a warning
    local name=${1//\\n/; }
    write "$1"
    ok "$name: goes on" ask_hnlaunch node1
    has "$name: told" "$TMP/all" "unobeyed $file: line ${3-1}: $2 is not obeyed: "
}

silent() { # TEXT
    write "$1"
    ok "${1//\\n/; }: goes on" ask_hnlaunch node1
    lacks "${1//\\n/; }: without a word" "$TMP/all" unobeyed
}

# Words, quotes, =, comments.
both 'User a'
both 'User=a'
both 'User = a'
both '\t User\ta \t'
both '"User" a'
both 'USER a'
both 'User "a b"'
both "User 'a b'"
both 'User a # more'
both 'User a#more'
both 'User a\\\\ b'
both 'User "a\\\\"b"'
both 'User a\r'
both '# only\n\n   # comments\nPort 5'
both 'User == a'
both 'User a b' node1 1
both 'Host *\nUser' node1 2
both 'User ""' node1 1
both 'User "a' node1 1
both 'Host ""\nUser a'
both 'ProxyCommand a "b  c" # d'
both 'ProxyCommand = a b'
both 'ProxyCommand a "b' node1 1

# Values.
both 'Port 0' node1 1
both 'Port 65536'
both 'Port 22x'
both 'Port ssh'
both 'AddressFamily inet6'
both 'AddressFamily inet7' node1 1
both 'Host other\nStrictHostKeyChecking maybe' node1 2
both 'StrictHostKeyChecking accept-new'
both 'IdentitiesOnly perhaps' node1 1
both 'IdentitiesOnly true'
both 'PubkeyAuthentication unbound'
both 'PubkeyAuthentication no'
both 'GSSAPIAuthentication yes'
both 'RequiredRSASize many' node1 1
both 'HostKeyAlias Other'
both 'UserKnownHostsFile none b' node1 1
both 'RevokedHostKeys' node1 1
both 'IdentityAgent $SOCK'
both 'IdentityAgent ${UNSET}' node1 1

# The first value wins; identities and certificates add up, also in the second pass.
both 'User a\nUser b\nPort 1\nPort 2'
both 'IdentityFile /a\nIdentityFile /b\nIdentityFile /a\nCertificateFile /c\nCertificateFile /d'
both 'Match final\nUser z\nMatch all\nIdentityFile /a'
both 'ProxyJump a\nProxyCommand b'
both 'ProxyCommand b\nProxyJump a'
both 'ProxyJump none\nProxyCommand b'
both 'ProxyCommand none\nProxyJump a'
both 'ProxyJump none\nProxyJump a'
both 'ProxyJump a,u@b:33 # c'

# Host.
both 'Host node1\nUser a'
both 'Host node1\nUser a' NODE1
both 'Host NODE1\nUser a'
both 'Host [n]ode1\nUser a'
both 'Host [n]ode1\nUser a' '[n]ode1'
both 'Host nod?[1]\nUser a'
both 'Host n*e? x\nUser a'
both 'Host node*,x\nUser a'
both 'Host node* !node1\nUser a\nHost *\nUser b'
both 'Host !node1\nUser a'
both 'Host !other\nUser a'
both 'Host "node1"\nUser a'
both 'Host node1 # x\nUser a'
both 'HostName %h.example\nMatch host *.example\nUser a'
both 'HostName NODE.Example'
both 'HostName ::0:1'
both 'HostName 127.1'
both 'User a' fe80::1%lo
both 'HostName %n'
both 'HostName %%x'

# Match.
both 'Match all\nUser a'
both 'Match !all\nUser a\nMatch all\nPort 7'
both 'Match host node1\nUser a'
both 'Match host=node1\nUser a'
both 'Match host NODE*\nUser a' Node1
both 'Match originalhost x,node1\nUser a'
both 'Match host *,!node1\nUser a'
both 'Match host "node1" port 3\nUser a'
both 'User a\nMatch user a\nPort 7'
both 'User a\nMatch user A\nPort 7'
both "Match localuser $(id -un)\\nPort 7"
both 'Match localuser nosuchuser\nPort 7'
both 'Match !host node1\nUser a\nMatch !host other\nUser b'
both 'Match'
both 'Match host' node1 1
both 'Match exec ""'
both 'Match host ""'
both 'Match nothing x' node1 1
both 'Host other\nMatch nothing x' node1 2
both 'Match all host x' node1 1
both 'Match host node1 user x all\nUser a'
both 'Match final all\nUser a'
both 'Match canonical all\nUser a'
both 'Match !final all\nUser a'
both 'Match exec "exit 0"\nUser a'
both 'Match exec "exit 1"\nUser a'
both 'Match !exec "exit 1" exec true\nUser a'
both 'Match exec "test %h%n%p%r = node1node122%u"\nUser a'
both 'Match exec "test ${UNSET:-x} = x"\nUser a'
both 'Match exec "test %%x = %%%%x"\nUser a'
both 'Match host x exec "touch '"$TMP"'/ran"\nUser a'
ok 'a command behind a criterion that does not hold does not run' not test -e "$TMP/ran"
both 'Match exec "kill -9 $$"\nUser a'
SHELL=/bin/false both 'Match exec "true"\nUser a'
SHELL=$TMP/nowhere/sh both 'Match exec "true"\nUser a'

# The second pass: Host sees the name that HostName gave, and nothing that was found changes.
both 'Match final\nUser z\nHost *\nUser a'
both 'Host node1\nHostName real\nHost real\nUser a'
both 'Host node1\nHostName real\nMatch final\nPort 9\nHost real\nUser a'
both 'Match final host node1\nUser a\nMatch host node1\nHostName real'
both 'Match final host real\nUser a\nMatch host node1\nHostName real'
both 'Match host node1 final\nUser a'
both 'Match host other final\nUser a\nMatch canonical\nPort 4'
both 'Match !final\nUser a\nMatch final\nUser b'

# Include.
mkdir "$TMP/more"
echo 'User included' >"$TMP/more/a"
echo 'Port 44' >"$TMP/more/c"
both "Include $TMP/more/*"
both "Include $TMP/more/a $TMP/more/c"
both "Include $TMP/nothing $TMP/nowhere/*"
both "Include \"$TMP/more/a\""
both "Host other\\n  Include $TMP/more/*\\nHost node1\\nIdentityFile /x"
ln -s "$TMP/nowhere" "$TMP/more/b"
both "Include $TMP/more/*"
rm "$TMP/more/b"
mkdir "$TMP/more/b"
both "Include $TMP/more/*"
rmdir "$TMP/more/b"
printf 'Host other\nUser x\nHost node1\nUser y\n' >"$TMP/more/b"
both "Include $TMP/more/b\\nPort 5"
both "Host other\\nInclude $TMP/more/b\\nHost node1\\nPort 5"
echo 'Include more' >"$TMP/more/b"
both "Include $TMP/more/b\\nUser a"
echo "Include $TMP/more/b" >"$TMP/more/b"
write "Include $TMP/more/b"
ok 'a file that includes itself: refused' not ask_hnlaunch node1
ok 'by ssh, too' not ask_ssh node1
has 'with its name' "$TMP/all" "Include goes deeper than 16 files"
if ((EUID == 0)); then
    echo 'User hidden' >"$TMP/more/b"
    chmod 000 "$TMP/more/b"
    chmod a+rx "$TMP" "$TMP/more"
    write "Include $TMP/more/*"
    nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
    ask_as_nobody() { nobody "$LOOK" "$file" node1 >"$TMP/all"; }
    ok 'an included file that cannot be read: refused' not ask_as_nobody
    ok 'by ssh, too' not nobody ssh -G -F "$file" node1
    has 'file and line' "$TMP/all" "error $file: line 1: $TMP/more/b: Permission denied"
else
    skip 'an included file that cannot be read' 'needs root'
fi
rm -f "$TMP/more/b"

# Unknown keywords, and those that ssh passes over.
both 'Frobnicate yes' node1 1
both 'Host other\nFrobnicate yes' node1 2
both 'IgnoreUnknown Frob*\nFrobnicate yes\nUser a'
both 'IgnoreUnknown Frob*,!Frobn*\nFrobnicate yes'
both 'Host other\nIgnoreUnknown Frob*\nHost *\nFrobnicate yes' node1 4
both 'Frobnicate yes\nIgnoreUnknown Frob*'
both 'UseRsh yes\nCipher x\nProtocol 2\nRSAAuthentication no\nUser a'
both 'ChallengeResponseAuthentication no\nPubkeyAcceptedKeyTypes ssh-ed25519\nUser a'

# Newer than the ssh of some machines.
finds 'Tag x\nMatch tagged x\nPort 7' 'port 7'
finds 'Tag x\nMatch tagged y\nPort 7' 'port 22'
finds 'Match tagged ""\nPort 7' 'port 7'
finds 'Match localnetwork 127.0.0.0/8\nPort 7' 'port 7'
finds 'Match localnetwork 240.0.0.0/8,::2/128\nPort 7' 'port 22'
finds 'Match sessiontype exec\nPort 7' 'port 7'
finds 'Match command ""\nPort 7' 'port 22'
finds 'Match command rsync*\nPort 7' 'port 22'
finds 'User %%n-${SET}' 'user node1-value'
finds 'Include '"$TMP"'/${SET}/x\nPort 7' 'port 7'
refused 'Match localnetwork 127.0.0.0/33' 'is not a network'
refused 'Match localnetwork nonsense' 'is not a network'
refused 'Match version OpenSSH_9*' 'the version of ssh(1)'
refused 'RefuseConnection "not today"' 'not today'
refused 'Include %%h' 'Include with %h is not obeyed'

# Tokens and variables in files: ssh -G does not expand them. What ssh refuses at the login is refused here.
finds 'IdentityFile ~/%%n-%%p-%%r-%%%%\nUser me' "identityfile $(getent passwd "$(id -u)" | cut -d: -f6)/node1-22-me-%"
finds 'IdentityFile ~root/x' 'identityfile /root/x'
finds 'IdentityFile /${SET}/x' 'identityfile /value/x'
finds 'UserKnownHostsFile /a/%%h "/b c"' 'knownhosts /a/node1' 'knownhosts /b c'
finds 'GlobalKnownHostsFile /a/%%h' 'knownhosts /a/%h'
finds 'HostName real\nIdentityFile /%%h/%%n/%%k' 'identityfile /real/node1/node1'
refused 'User a\nIdentityFile /${UNSET}' 'the variable UNSET is not set' 2
refused 'CertificateFile /%%q' "token '%q' is unknown" 1
finds 'ProxyCommand x ${UNSET:-y} %%h' 'proxycommand x ${UNSET:-y} node1'
refused 'ProxyCommand x %%q' "token '%q' is unknown"
hash=$(printf '%s' "$(hostname)node122me" | sha1sum | cut -d' ' -f1)
finds 'User me\nIdentityFile /%%C' "identityfile /$hash"

# What is not obeyed.
refused 'User a\nKnownHostsCommand /bin/true' 'KnownHostsCommand is not obeyed: ' 2
refused 'CheckHostIP yes' 'CheckHostIP is not obeyed'
refused 'CanonicalizeHostname yes' 'CanonicalizeHostname is not obeyed'
refused 'CanonicalizePermittedCNAMEs *:*' 'CanonicalizePermittedCNAMEs is not obeyed'
refused 'ProxyUseFdpass yes' 'ProxyUseFdpass is not obeyed'
refused 'RemoteCommand ls' 'RemoteCommand is not obeyed'
refused 'SessionType none' 'SessionType is not obeyed'
refused 'GSSAPIAuthentication yes\nGSSAPIServerIdentity x' 'GSSAPIServerIdentity is not obeyed' 2
silent 'GSSAPIServerIdentity x'
silent 'KnownHostsCommand none\nCheckHostIP no\nCanonicalizeHostname no\nRemoteCommand none\nSessionType default'
silent 'CheckHostIP no\nHost other\nCheckHostIP yes'
silent 'Host other\nKnownHostsCommand /bin/true\nLocalForward 1 a:1'
told 'User a\nLocalForward 1234 a:22' LocalForward 2
told 'RemoteForward 1234 a:22' RemoteForward
told 'DynamicForward 1234' DynamicForward
silent 'ClearAllForwardings yes\nLocalForward 1234 a:22'
told 'LocalForward 1234 a:22\nClearAllForwardings no' LocalForward
told 'ForwardAgent yes' ForwardAgent
told 'ForwardX11 yes' ForwardX11
told 'SetEnv A=b' SetEnv
told 'VerifyHostKeyDNS yes' VerifyHostKeyDNS
told 'PKCS11Provider /x.so' PKCS11Provider
told 'RekeyLimit 1G 1h' RekeyLimit
silent 'RekeyLimit default none'
told 'PermitLocalCommand yes\nLocalCommand true' LocalCommand 2
silent 'LocalCommand true'
told 'Tunnel yes' Tunnel
told 'HostbasedAuthentication yes' HostbasedAuthentication
silent 'ForwardAgent no\nForwardX11 no\nVerifyHostKeyDNS no\nTunnel no'
silent 'ServerAliveInterval 5\nControlMaster auto\nControlPath ~/%%C\nSendEnv LANG LC_*\nCASignatureAlgorithms ssh-rsa'

# What distributions ship has no message: Debian and Ubuntu, then Red Hat with its crypto policies.
silent 'Host *\nSendEnv LANG LC_*\nHashKnownHosts yes\nGSSAPIAuthentication yes'
redhat='Match final all\nCiphers aes256-gcm@openssh.com,aes256-ctr\nMACs hmac-sha2-256\nGSSAPIKeyExchange no\n'
redhat+='GSSAPIKexAlgorithms gss-nistp256-sha256-\nKexAlgorithms curve25519-sha256\nRequiredRSASize 2048\n'
redhat+='PubkeyAcceptedAlgorithms ssh-ed25519\nHostKeyAlgorithms ssh-ed25519\nCASignatureAlgorithms ssh-ed25519\n'
redhat+='HostbasedAcceptedAlgorithms ssh-ed25519\nGSSAPIAuthentication yes\nForwardX11Trusted yes\n'
silent "$redhat"
systemd='Host unix/* vsock/*\nProxyCommand /usr/lib/systemd/systemd-ssh-proxy %%h %%p\nProxyUseFdpass yes\nCheckHostIP no'
silent "$systemd"
done_testing
