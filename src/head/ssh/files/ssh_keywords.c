/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keyword is obeyed, harmless, told, told aside or refused. The question is always: would ssh(1)
 * with this line refuse the login, or reach another place? Then the line is obeyed here or refused.
 * If ranks would find more on their nodes, such as a variable or a ticket, a warning tells that in
 * each launch. If it would only do more here, or log in by another way, the warning is for -v and
 * for a login that fails: many have such lines for all hosts, and a launch misses nothing. To obey
 * another keyword, set its use to KEYWORD_OBEYED and read it in complete_host() of ssh_config.c.
 */
#include "head/ssh/files/ssh_keywords.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FLAGS "yes|no|true|false"

/* clang-format off */
static const struct ssh_keyword keywords[] = {
#define OBEYED(name, kind)         { name, KEYWORD_OBEYED, kind, NULL, NULL, NULL, NULL }
#define CHOSEN(name, choices)      { name, KEYWORD_OBEYED, VALUE_CHOICE, choices, NULL, NULL, NULL }
#define HARMLESS(name, kind, why) { name, KEYWORD_HARMLESS, kind, NULL, NULL, why, NULL }
#define TOLD(name, fine, why, only_if)    { name, KEYWORD_TOLD, VALUE_ANY, NULL, fine, why, only_if }
#define ASIDE(name, fine, why, only_if)   { name, KEYWORD_ASIDE, VALUE_ANY, NULL, fine, why, only_if }
#define REFUSED(name, fine, why, only_if) { name, KEYWORD_REFUSED, VALUE_ANY, NULL, fine, why, only_if }
        OBEYED("Host", VALUE_ANY),
        OBEYED("Match", VALUE_ANY),
        OBEYED("Include", VALUE_ANY),
        OBEYED("IgnoreUnknown", VALUE_WORD),
        OBEYED("Tag", VALUE_WORD),

        CHOSEN("AddressFamily", "any|inet|inet6"),
        OBEYED("BindAddress", VALUE_WORD),
        OBEYED("BindInterface", VALUE_WORD),
        OBEYED("CertificateFile", VALUE_WORD),
        OBEYED("Ciphers", VALUE_WORD),
        OBEYED("GSSAPIAuthentication", VALUE_FLAG),
        OBEYED("GlobalKnownHostsFile", VALUE_FILES),
        OBEYED("HashKnownHosts", VALUE_FLAG),
        OBEYED("HostKeyAlgorithms", VALUE_WORD),
        OBEYED("HostKeyAlias", VALUE_WORD),
        OBEYED("HostName", VALUE_WORD),
        OBEYED("IdentitiesOnly", VALUE_FLAG),
        OBEYED("IdentityAgent", VALUE_WORD),
        OBEYED("IdentityFile", VALUE_WORD),
        OBEYED("KexAlgorithms", VALUE_WORD),
        OBEYED("MACs", VALUE_WORD),
        OBEYED("Port", VALUE_PORT),
        OBEYED("PreferredAuthentications", VALUE_WORD),
        OBEYED("ProxyCommand", VALUE_LINE),
        OBEYED("ProxyJump", VALUE_LINE),
        OBEYED("PubkeyAcceptedAlgorithms", VALUE_WORD),
        CHOSEN("PubkeyAuthentication", FLAGS "|unbound|host-bound"),
        OBEYED("RefuseConnection", VALUE_WORD),
        OBEYED("RequiredRSASize", VALUE_NUMBER),
        OBEYED("RevokedHostKeys", VALUE_FILES),
        OBEYED("User", VALUE_WORD),
        OBEYED("UserKnownHostsFile", VALUE_FILES),

        /* Another place, or a stricter login. */
        REFUSED("CanonicalizeHostname", "no|false", "names are not made canonical", NULL),
        REFUSED("CanonicalizePermittedCNAMEs", "none", "names are not made canonical", NULL),
        REFUSED("CheckHostIP", "no|false", "the addresses of hosts are not looked for in known_hosts", NULL),
        REFUSED("GSSAPIClientIdentity", NULL, "GSSAPI uses the default identity", "GSSAPIAuthentication yes"),
        REFUSED("GSSAPIServerIdentity", NULL, "GSSAPI expects the name of the host", "GSSAPIAuthentication yes"),
        REFUSED("KnownHostsCommand", "none", "only files name known and revoked host keys", NULL),
        REFUSED("ProxyUseFdpass", "no|false", "a ProxyCommand is talked with over its standard streams", NULL),
        REFUSED("RemoteCommand", "none", "the command is hnlaunch's, and ssh(1) refuses to run two", NULL),
        REFUSED("SessionType", "default", "a launch needs a session with a command", NULL),

        /* The same login, but ranks find less on their nodes. */
        TOLD("GSSAPIDelegateCredentials", "no|false", "nodes get no Kerberos ticket", "GSSAPIAuthentication yes"),
        TOLD("RemoteForward", NULL, "no port is forwarded", "!ClearAllForwardings yes"),
        TOLD("SetEnv", NULL, "the variables of ranks are those of --export and --env", NULL),
        TOLD("Tunnel", "no|false", "no tunnel is opened", "!ClearAllForwardings yes"),

        /* Ranks are the same: what is missing is for a terminal, or for another way to log in. */
        ASIDE("ChannelTimeout", "none", "idle channels stay open", NULL),
        ASIDE("DynamicForward", NULL, "no port is forwarded", "!ClearAllForwardings yes"),
        ASIDE("ForwardAgent", "no|false", "ranks get no ssh-agent; -o ssh.tree_auth=forward serves a tree", NULL),
        ASIDE("ForwardX11", "no|false", "ranks get no X11 display", NULL),
        ASIDE("GSSAPIKeyExchange", "no|false", "host keys are checked with known_hosts, not with Kerberos", NULL),
        ASIDE("GSSAPITrustDns", "no|false", "GSSAPI takes the name of the host as it is", "GSSAPIAuthentication yes"),
        ASIDE("HostbasedAuthentication", "no|false", "host-based logins are not tried", NULL),
        ASIDE("LocalCommand", "none", "no local command runs", "PermitLocalCommand yes"),
        ASIDE("LocalForward", NULL, "no port is forwarded", "!ClearAllForwardings yes"),
        ASIDE("PKCS11Provider", "none", "keys of tokens are used through an ssh-agent only", NULL),
        ASIDE("RekeyLimit", "default", "session keys are renewed at the limits of libssh", NULL),
        ASIDE("SecurityKeyProvider", "internal|none|$SSH_SK_PROVIDER", "keys of tokens are used through an ssh-agent only", NULL),
        ASIDE("VerifyHostKeyDNS", "no|false", "keys in DNS are not looked at, only known_hosts", NULL),

        HARMLESS("AddKeysToAgent", VALUE_ANY, "no passphrase is asked for"),
        HARMLESS("BatchMode", VALUE_FLAG, "nothing is ever asked"),
        HARMLESS("CASignatureAlgorithms", VALUE_WORD, "host certificates are not used, their plain keys are"),
        HARMLESS("CanonicalDomains", VALUE_ANY, "counts with CanonicalizeHostname"),
        HARMLESS("CanonicalizeFallbackLocal", VALUE_FLAG, "counts with CanonicalizeHostname"),
        HARMLESS("CanonicalizeMaxDots", VALUE_NUMBER, "counts with CanonicalizeHostname"),
        HARMLESS("ClearAllForwardings", VALUE_FLAG, "nothing is forwarded"),
        HARMLESS("Compression", VALUE_FLAG, "the agent decides what is compressed"),
        HARMLESS("ConnectTimeout", VALUE_ANY, "--connect-timeout counts"),
        HARMLESS("ConnectionAttempts", VALUE_NUMBER, "--connect-timeout counts"),
        HARMLESS("ControlMaster", VALUE_ANY, "each node has a session of its own"),
        HARMLESS("ControlPath", VALUE_WORD, "each node has a session of its own"),
        HARMLESS("ControlPersist", VALUE_ANY, "each node has a session of its own"),
        HARMLESS("EnableEscapeCommandline", VALUE_FLAG, "there is no terminal"),
        HARMLESS("EnableSSHKeysign", VALUE_FLAG, "counts with HostbasedAuthentication"),
        HARMLESS("EscapeChar", VALUE_ANY, "there is no terminal"),
        HARMLESS("ExitOnForwardFailure", VALUE_FLAG, "nothing is forwarded"),
        HARMLESS("FingerprintHash", VALUE_ANY, "messages show SHA256"),
        HARMLESS("ForkAfterAuthentication", VALUE_FLAG, "sessions belong to hnlaunch"),
        HARMLESS("ForwardX11Timeout", VALUE_ANY, "counts with ForwardX11"),
        HARMLESS("ForwardX11Trusted", VALUE_FLAG, "counts with ForwardX11"),
        HARMLESS("GSSAPIKexAlgorithms", VALUE_ANY, "counts with GSSAPIKeyExchange"),
        HARMLESS("GSSAPIRenewalForcesRekey", VALUE_FLAG, "counts with GSSAPIKeyExchange"),
        HARMLESS("GatewayPorts", VALUE_FLAG, "nothing is forwarded"),
        HARMLESS("HostbasedAcceptedAlgorithms", VALUE_ANY, "counts with HostbasedAuthentication"),
        HARMLESS("IPQoS", VALUE_ANY, "packets have the default priority"),
        HARMLESS("KbdInteractiveAuthentication", VALUE_FLAG, "nothing is ever asked"),
        HARMLESS("KbdInteractiveDevices", VALUE_ANY, "nothing is ever asked"),
        HARMLESS("LogLevel", VALUE_ANY, "messages are hnlaunch's"),
        HARMLESS("LogVerbose", VALUE_ANY, "messages are hnlaunch's"),
        HARMLESS("NoHostAuthenticationForLocalhost", VALUE_FLAG, "host keys are always checked"),
        HARMLESS("NumberOfPasswordPrompts", VALUE_NUMBER, "nothing is ever asked"),
        HARMLESS("ObscureKeystrokeTiming", VALUE_ANY, "there is no terminal"),
        HARMLESS("PasswordAuthentication", VALUE_FLAG, "nothing is ever asked"),
        HARMLESS("PermitLocalCommand", VALUE_FLAG, "counts with LocalCommand"),
        HARMLESS("PermitRemoteOpen", VALUE_ANY, "nothing is forwarded"),
        HARMLESS("RequestTTY", VALUE_ANY, "there is no terminal"),
        HARMLESS("SendEnv", VALUE_ANY, "--export counts"),
        HARMLESS("ServerAliveCountMax", VALUE_NUMBER, "hnlaunch pings its agents"),
        HARMLESS("ServerAliveInterval", VALUE_ANY, "hnlaunch pings its agents"),
        HARMLESS("StdinNull", VALUE_FLAG, "--stdin counts"),
        HARMLESS("StreamLocalBindMask", VALUE_ANY, "nothing is forwarded"),
        HARMLESS("StreamLocalBindUnlink", VALUE_FLAG, "nothing is forwarded"),
        { "StrictHostKeyChecking", KEYWORD_HARMLESS, VALUE_CHOICE, FLAGS "|ask|off|accept-new", NULL,
          "host keys are always checked; --host-key accept-new", NULL },
        HARMLESS("SyslogFacility", VALUE_ANY, "messages are hnlaunch's"),
        HARMLESS("TCPKeepAlive", VALUE_FLAG, "hnlaunch pings its agents"),
        HARMLESS("TunnelDevice", VALUE_ANY, "counts with Tunnel"),
        HARMLESS("UpdateHostKeys", VALUE_ANY, "no keys are learned"),
        HARMLESS("VersionAddendum", VALUE_LINE, "the version is libssh's"),
        HARMLESS("VisualHostKey", VALUE_FLAG, "messages are hnlaunch's"),
        HARMLESS("WarnWeakCrypto", VALUE_ANY, "messages are hnlaunch's"),
        HARMLESS("XAuthLocation", VALUE_WORD, "counts with ForwardX11"),

        HARMLESS("AFSTokenPassing", VALUE_ANY, "ssh(1) ignores it, too"),
        HARMLESS("Cipher", VALUE_ANY, "ssh(1) ignores it, too"),
        HARMLESS("CompressionLevel", VALUE_ANY, "ssh(1) ignores it, too"),
        HARMLESS("FallBackToRsh", VALUE_ANY, "ssh(1) ignores it, too"),
        HARMLESS("GlobalKnownHostsFile2", VALUE_ANY, "ssh(1) ignores it, too"),
        HARMLESS("KerberosAuthentication", VALUE_ANY, "ssh(1) ignores it, too"),
        HARMLESS("KerberosTGTPassing", VALUE_ANY, "ssh(1) ignores it, too"),
        HARMLESS("Protocol", VALUE_ANY, "ssh(1) ignores it, too"),
        HARMLESS("RSAAuthentication", VALUE_ANY, "ssh(1) ignores it, too"),
        HARMLESS("RhostsAuthentication", VALUE_ANY, "ssh(1) ignores it, too"),
        HARMLESS("RhostsRSAAuthentication", VALUE_ANY, "ssh(1) ignores it, too"),
        HARMLESS("UsePrivilegedPort", VALUE_ANY, "ssh(1) ignores it, too"),
        HARMLESS("UseRoaming", VALUE_ANY, "ssh(1) ignores it, too"),
        HARMLESS("UseRsh", VALUE_ANY, "ssh(1) ignores it, too"),
        HARMLESS("UserKnownHostsFile2", VALUE_ANY, "ssh(1) ignores it, too"),
};
/* clang-format on */

/* Older names and names of distributions, which ssh(1) takes for the present names. */
static const struct {
        const char *old, *name;
} aliases[] = {
        { "ChallengeResponseAuthentication", "KbdInteractiveAuthentication" },
        { "DSAAuthentication", "PubkeyAuthentication" },
        { "HostbasedKeyTypes", "HostbasedAcceptedAlgorithms" },
        { "IdentityFile2", "IdentityFile" },
        { "KeepAlive", "TCPKeepAlive" },
        { "ProtocolKeepAlives", "ServerAliveInterval" }, /* Debian */
        { "PubkeyAcceptedKeyTypes", "PubkeyAcceptedAlgorithms" },
        { "RSAMinSize", "RequiredRSASize" },  /* Red Hat */
        { "SetupTimeOut", "ConnectTimeout" }, /* Debian */
        { "SKeyAuthentication", "KbdInteractiveAuthentication" },
        { "SmartcardDevice", "PKCS11Provider" },
        { "TISAuthentication", "KbdInteractiveAuthentication" },
};

const struct ssh_keyword *ssh_keyword_at(size_t i)
{
        return i < ARRAY_SIZE(keywords) ? &keywords[i] : NULL;
}

const struct ssh_keyword *ssh_keyword_find(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
                if (strcasecmp(aliases[i].old, name) == 0)
                        name = aliases[i].name;
        for (size_t i = 0; i < ARRAY_SIZE(keywords); i++)
                if (strcasecmp(keywords[i].name, name) == 0)
                        return &keywords[i];
        return NULL;
}

bool ssh_keyword_list_has(const char *list, const char *word)
{
        size_t len = strlen(word), n;

        for (; list && *list; list += n + (list[n] == '|')) {
                n = strcspn(list, "|");
                if (n == len && strncasecmp(list, word, n) == 0)
                        return true;
        }
        return false;
}

/* Returns 1 to 65535 for a number or a service of TCP, as ssh(1) does; else -1. */
int ssh_keyword_port(const char *word)
{
        struct servent entry, *found = NULL;
        char room[1024], *end;
        long port = strtol(word, &end, 10);

        if (end != word && !*end)
                return port >= 1 && port <= 65535 ? (int)port : -1;
        if (getservbyname_r(word, "tcp", &entry, room, sizeof(room), &found) == 0 && found)
                return ntohs((uint16_t)found->s_port);
        return -1;
}

/* Only the form counts: limits are those of the code that reads the number. */
static int check_number(const struct ssh_keyword *k, const char *word, struct error *err)
{
        char *end;

        if (k->value == VALUE_PORT)
                return ssh_keyword_port(word) > 0
                               ? 0
                               : err_set(err, EINVAL, "%s must be 1 to 65535, not '%s'", k->name,
                                         word);
        errno = 0;
        (void)strtol(word, &end, 10);
        if (end == word || *end || errno)
                return err_set(err, EINVAL, "%s must be a number, not '%s'", k->name, word);
        return 0;
}

int ssh_keyword_check(const struct ssh_keyword *k, const struct strv *args, struct error *err)
{
        const bool listed = k->value == VALUE_ANY || k->value == VALUE_FILES;
        const char *choices = k->value == VALUE_FLAG ? FLAGS : k->choices;

        if (args->n == 0 || !*args->v[0])
                return err_set(err, EINVAL, "%s has no value", k->name);
        if (k->value == VALUE_LINE)
                return 0;
        if (!listed && args->n > 1)
                return err_set(err, EINVAL, "%s has one value, and then '%s'", k->name, args->v[1]);
        if (k->value == VALUE_NUMBER || k->value == VALUE_PORT)
                return check_number(k, args->v[0], err);
        if (choices && !ssh_keyword_list_has(choices, args->v[0]))
                return err_set(err, EINVAL, "%s cannot be '%s'", k->name, args->v[0]);
        for (size_t i = 0; k->value == VALUE_FILES && i < args->n; i++)
                if (!*args->v[i] || (args->n > 1 && strcasecmp(args->v[i], "none") == 0))
                        return err_set(err, EINVAL, "%s: '%s' among other files", k->name,
                                       args->v[i]);
        return 0;
}
