/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of -h, --help and --help TOPIC. Topics of prose are constants; --help, the exit codes
 * and the table for programs are printed from option_table and head/term/error_ids.h.
 *
 * Texts are laid out for 80 columns or more, with blanks between columns. On a narrower terminal
 * put_help_text() folds paragraphs anew and puts columns below each other; a pipe gets the lines as
 * they are. The completions of shells and the pages of the manual are made from `hnlaunch help
 * table`.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/options/explain.h"
#include "head/options/option_table.h"
#include "head/term/columns.h"
#include "head/term/diag.h"

/* Where the help of an option begins, and the least width of a text: in less,
 * words would be broken. */
enum { TEXT_AT = 34, TEXT_MIN = 20 };

/* The text of -h, which names the commands and the options of most launches. */
static const char screen[] =
        "hnlaunch: start one program on many GPU nodes over ssh\n"
        "\n"
        "  hnlaunch -H hosts.txt train.bin --lr 1e-4        all slots of all hosts\n"
        "  hnlaunch -w 'gpu[001-004]:8' -x NCCL_DEBUG=INFO ./a.out\n"
        "  hnlaunch --local 4 ./a.out                       no ssh, any machine\n"
        "  hnlaunch plan -H hosts.txt                       show the ranks, start nothing\n"
        "  hnlaunch check -H hosts.txt                      are the nodes fit? start nothing\n"
        "\n"
        "  where     -H FILE  -w LIST  --exclude SPEC  --nodes N  --job FILE (settings)\n"
        "  how many  -n N (ranks)  --ppn N (per node)  --map node (round the nodes)\n"
        "  with      -x NAME[=V]  --chdir DIR  --push FILE  --container KIND:NAME\n"
        "  until     --timeout 2h  --grace 30s  --restart auto  --on-hang stop\n"
        "  output    --show RANKS  --timestamps  --log-dir DIR  --detach  -v  -q\n"
        "\n"
        "Options stand before the program; everything after it is the program's.\n"
        "\n"
        "runs      ps (list them)  top (what one does)  why (who waits for whom)\n"
        "          logs (output)  report (how it went)  attach, wait (to its end)\n"
        "          stop  drain  signal  rerun  bad (hosts that runs have put out)\n"
        "hosts     hosts (lists; --probe writes a hostfile)  trust (host keys)\n"
        "          hold, release (agents that stay)  stage (files ahead of a run)\n"
        "settings  config (with origins)  explain (an error number or exit code)\n"
        "more      help COMMAND, OPTION, or hostfile | env | exit | config;  version\n"
        "          --help: every option of a run\n";

static const char hostfile[] =
        "hostfile: one host per line, in the order of the node ranks; # begins a comment\n"
        "\n"
        "  gpu001                        slots: the GPUs it has, else 1\n"
        "  gpu002 slots=8                as in Open MPI, DeepSpeed, Horovod\n"
        "  gpu003:8                      as in MPICH\n"
        "  gpu[004-064,070] slots=8      many names at once\n"
        "  alice@gpu071 port=2222        login name and port\n"
        "  [2001:db8::7]:8               an IPv6 address\n"
        "  gpu072 gpus=0,2,4-6           these devices only\n"
        "  gpu073 addr=10.8.0.73         address for the other ranks\n"
        "\n"
        "keys: slots max_slots gpus port user addr iface numa tags; a word: spare\n"
        "\n"
        "A repeated host without slots gains one slot each time, as in PBS node files. -w takes "
        "the\n"
        "same words, separated by commas; beside -H the list chooses among the hosts of the file.\n"
        "See hnlaunch-hostfile(5).\n";

/* The first column has hnlaunch's own names, the second those of torchrun and other launchers. */
static const char environment[] =
        "environment of a rank\n"
        "\n"
        "The node's own login environment, then this shell's variables except those of a session\n"
        "or a host (HOSTNAME SSH_* DISPLAY XDG_* TERM_* SLURM_* CUDA_VISIBLE_DEVICES ...), then\n"
        "--env-file and -x, then --unset. --export NONE sends none of this shell's variables,\n"
        "--export NAME,... only those. hnlaunch sets:\n"
        "\n"
        "  HN_RANK              RANK, ROLE_RANK                    0 to world size - 1\n"
        "  HN_WORLD_SIZE        WORLD_SIZE, ROLE_WORLD_SIZE        ranks in all\n"
        "  HN_LOCAL_RANK        LOCAL_RANK                         rank within the node\n"
        "  HN_LOCAL_WORLD_SIZE  LOCAL_WORLD_SIZE, LOCAL_SIZE       ranks of this node\n"
        "  HN_NODE_RANK         NODE_RANK, GROUP_RANK, CROSS_RANK  number of the node\n"
        "  HN_NUM_NODES         GROUP_WORLD_SIZE, CROSS_SIZE       nodes in use\n"
        "  HN_RUN_ID            TORCHELASTIC_RUN_ID                name of the run\n"
        "  HN_RESTART           TORCHELASTIC_RESTART_COUNT         restarts before this attempt\n"
        "                       TORCHELASTIC_MAX_RESTARTS          value of --max-restarts\n"
        "  HN_PUSH_DIR                                             folder of the files of --push\n"
        "  HN_STAGE_DIR                                            folder of the files of --stage\n"
        "  HN_VENV              VIRTUAL_ENV, PATH                  environment of --venv\n"
        "  HN_STORE                                                socket of the node's store\n"
        "                       MASTER_ADDR, MASTER_PORT           PyTorch's store, see "
        "--store-listen\n"
        "  HN_PORT_NAME                                            port of rank 0's node, see "
        "--subst\n"
        "  HN_MASTER_ADDR                                          rank 0's node on the ranks' "
        "network\n"
        "                       TORCHELASTIC_USE_AGENT_STORE       True: hnlaunch serves that "
        "store\n"
        "                       TORCHELASTIC_ERROR_FILE            file for the reason of a "
        "failure\n"
        "                       ROLE_NAME                          default\n"
        "                       PMI_RANK, PMI_SIZE, PMI_FD         for MPI, see --mpi; "
        "MPI_LOCALRANKID,\n"
        "                                                          MPI_LOCALNRANKS; PMI_PORT and "
        "PMI_ID\n"
        "                                                          instead of PMI_FD with "
        "pmi-port\n"
        "                       PMI_HOSTNAME                       the node's address, on several "
        "nodes\n"
        "                       FLUX_PMI_LIBRARY_PATH,             PMI-1 for Open MPI 3 and 4: see "
        "--mpi "
        "pmi1\n"
        "                       FLUX_JOB_ID, HNLAUNCH_PMI_CLIQUE\n"
        "                       OMPI_COMM_WORLD_RANK,              the same for Open MPI, beside "
        "PMIX_*\n"
        "                       OMPI_COMM_WORLD_SIZE,              and JSM_JSRUN_PORT\n"
        "                       OMPI_COMM_WORLD_LOCAL_RANK,\n"
        "                       OMPI_COMM_WORLD_LOCAL_SIZE,\n"
        "                       OMPI_COMM_WORLD_NODE_RANK\n"
        "\n"
        "Unless you set them:\n"
        "\n"
        "  GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME   the interface towards MASTER_ADDR\n"
        "  OMP_NUM_THREADS                          processors of the node, or of --bind, / its "
        "ranks\n"
        "  NCCL_IB_HCA, UCX_NET_DEVICES             with --nic near: the nearest InfiniBand ports\n"
        "  PYTHONUNBUFFERED, PYTHONFAULTHANDLER     1; --unset removes them, too\n"
        "  FORCE_COLOR, COLUMNS                     1, and the width without the label: output on "
        "a terminal\n"
        "  NCCL_RAS_ADDR                            127.0.0.1 and a free port\n"
        "  TORCH_FR_BUFFER_SIZE                     2000\n"
        "  TORCH_FR_DUMP_TEMP_FILE                  path of dumps\n"
        "  TORCH_NCCL_DEBUG_INFO_PIPE_FILE          path of FIFOs that order a dump\n"
        "  TORCH_NCCL_ASYNC_ERROR_HANDLING          3\n"
        "  TORCH_NCCL_TRACE_BUFFER_SIZE, TORCH_NCCL_DEBUG_INFO_TEMP_FILE, "
        "TORCH_NCCL_DUMP_ON_TIMEOUT\n"
        "                                           the same and 1, for PyTorch 2.2 to 2.7\n"
        "  NCCL_ASYNC_ERROR_HANDLING                1, for PyTorch before 2.2\n"
        "  CUDA_VISIBLE_DEVICES                     the GPUs of the ranks, if these are a part of "
        "the node's;\n"
        "                                           a list of yours counts as the node's GPUs\n"
        "  CUDA_DEVICE_ORDER                        PCI_BUS_ID, beside CUDA_VISIBLE_DEVICES\n"
        "\n"
        "--compat ompi|slurm|mpich|horovod|deepspeed adds the variables of that launcher, see\n"
        "hnlaunch-variables(7). hnlaunch plan --ranks 0 ... prints the whole environment of a "
        "rank.\n";

/* In rising order, as config_load() reads the places. */
static const char config[] =
        "configuration: later ones win\n"
        "\n"
        "  built in\n"
        "  /etc/hnlaunch/config.ini\n"
        "  ${XDG_CONFIG_HOME:-~/.config}/hnlaunch/config.ini\n"
        "  --job FILE          the job file\n"
        "  HNLAUNCH_RUN_PPN=8  any key, in capitals\n"
        "  command line        options, and -o run.ppn=8\n"
        "\n"
        "  [run]\n"
        "  hostfile = hosts.txt       ; relative to this file\n"
        "  ppn      = 8\n"
        "  [env]\n"
        "  set.NCCL_DEBUG = WARN\n"
        "  [ssh]\n"
        "  user = alice\n"
        "\n"
        "A job file has the same keys and, in [run], the program. Its line is split into words as\n"
        "by a shell, without expansion; ranks start in the folder of this shell:\n"
        "\n"
        "  [run]\n"
        "  program = ./a.out --name 'two words'\n"
        "\n"
        "hnlaunch config [KEY...] shows the keys named, or all: value, origin, overridden "
        "values.\n";

/* Returns how wide lines may be: as the terminal. */
static size_t help_columns(void)
{
        return isatty(STDOUT_FILENO) ? MAX(columns_of_terminal(STDOUT_FILENO), (size_t)TEXT_MIN)
                                     : SIZE_MAX;
}

/* Whether a line of @len bytes is one of a paragraph: without columns. Lines of a paragraph may be
 * joined before they are folded. */
static bool is_prose(const char *line, size_t len)
{
        return len && *line != ' ' && !memmem(line, len, "  ", 2);
}

/* Returns where the last column of a line begins; 0 = it has none. Two blanks part columns. */
static size_t find_last_column(const char *line)
{
        size_t last = 0;

        for (size_t i = strspn(line, " ") + 2; line[i - 1] && line[i]; i++)
                if (line[i - 2] == ' ' && line[i - 1] == ' ' && line[i] != ' ')
                        last = i;
        return last;
}

/* Prints a line that is too wide: the rest below its last column or, if that is too narrow, each
 * column on a line of its own. */
static void put_wide_line(size_t columns, const char *line)
{
        size_t blanks = strspn(line, " "), last = find_last_column(line), len;
        /* A column far to the right begins at the left of a narrow terminal. */
        size_t left = blanks > columns / 3 ? 4 : blanks;

        line += blanks;
        printf("%*s", (int)left, "");
        if (last && last + TEXT_MIN <= columns && left == blanks) {
                explain_put_folded(columns, left, last, line);
                return;
        }
        for (size_t at = left; *line; line += len + strspn(line + len, " ")) {
                /* Three blanks part columns here: two may stand within a column. */
                const char *gap = strstr(line, "   ");

                len = gap ? (size_t)(gap - line) : strlen(line);
                CLEANUP(free_textp) char *part = xstrndup(line, len);

                if (at != left)
                        printf("%*s", (int)at, "");
                explain_put_folded(columns, at, at + (last || left ? 2 : 0), part);
                at = left + 4;
        }
}

/* Prints lines, folded where they are wider than the terminal. A fitting text is printed unchanged:
 * joined paragraphs would lose their line ends. */
static void put_help_text(const char *text)
{
        size_t columns = help_columns(), widest = 0, len;

        for (const char *p = text; *p; p += len + (p[len] == '\n')) {
                len = strcspn(p, "\n");
                widest = MAX(widest, len);
        }
        if (widest <= columns) {
                fputs(text, stdout);
                return;
        }
        for (; *text; text += len + (text[len] == '\n')) {
                CLEANUP(buf_finish) struct buf line = BUF_INIT;

                len = strcspn(text, "\n");
                buf_append(&line, text, len);
                while (is_prose(text, len) && text[len] &&
                       is_prose(text + len + 1, strcspn(text + len + 1, "\n"))) {
                        text += len + 1;
                        len = strcspn(text, "\n");
                        buf_appends(&line, " ");
                        buf_append(&line, text, len);
                }
                CLEANUP(free_textp) char *whole = buf_len(&line) ? buf_steal(&line) : xstrdup("");

                if (strlen(whole) <= columns)
                        puts(whole);
                else
                        put_wide_line(columns, whole);
        }
}

/* Prints an option with its value, and the help in a second column or, where
 * there is no room, below. */
static void print_option_help(const struct option_def *def)
{
        size_t columns = help_columns(), indent = TEXT_AT;
        char left[96];
        int n = def->flags & OPTION_KEY ? snprintf(left, sizeof(left), "  -o %s=", def->key)
                : def->letter ? snprintf(left, sizeof(left), "  -%c, --%s", def->letter, def->name)
                              : snprintf(left, sizeof(left), "      --%s", def->name);

        if (def->flags & OPTION_KEY)
                snprintf(left + n, sizeof(left) - (size_t)n, "%s", def->arg ? def->arg : "yes");
        else if (def->arg)
                snprintf(left + n, sizeof(left) - (size_t)n,
                         def->flags & OPTION_OPTIONAL ? "[=%s]" : " %s", def->arg);
        /* Too narrow for two columns: the help stands below the option. */
        if (columns < TEXT_AT + TEXT_MIN)
                indent = 10;
        if (strlen(left) > columns) {
                size_t blanks = strspn(left, " ");

                printf("%*s", (int)blanks, "");
                explain_put_folded(columns, blanks, blanks + 2, left + blanks);
                printf("%*s", (int)indent, "");
        } else if (strlen(left) > indent - 2) {
                /* A long option has its help in the next line. */
                printf("%s\n%*s", left, (int)indent, "");
        } else {
                printf("%-*s", (int)indent, left);
        }
        CLEANUP(free_textp)
        char *text = def->preset ? xasprintf("%s (default: %s)", def->help, def->preset)
                                 : xstrdup(def->help);
        explain_put_wrapped(columns, indent, text);
}

/* Whether the option stands in lists of options: keys have a list of their own. */
static bool is_shown(const struct option_def *def, enum command command)
{
        return !(def->flags & (OPTION_HIDDEN | OPTION_KEY)) && option_belongs(def, command);
}

/* Prints the options of a run by their groups. */
static void print_all(void)
{
        put_help_text(
                "usage: hnlaunch [run] [OPTION...] PROGRAM [ARG...]\n"
                "       hnlaunch COMMAND [OPTION...] [WORD...]    see hnlaunch help COMMAND\n");
        for (int group = 0; group < OPTION_GROUPS; group++) {
                printf("\n%s\n", option_group_titles[group]);
                for (size_t i = 0; i < option_count; i++)
                        if ((int)option_table[i].group == group &&
                            is_shown(&option_table[i], COMMAND_RUN))
                                print_option_help(&option_table[i]);
        }
        puts("\nKeys without an option");
        for (size_t i = 0; i < option_count; i++)
                if (option_table[i].flags & OPTION_KEY)
                        print_option_help(&option_table[i]);
        put_help_text(
                "\nTIME is 10s, 2m, 500ms, 1h; a bare number is seconds; never where it says so.\n"
                "SIZE is 512M or 2G; K, M, G and T are powers of 1024.\n");
}

/* Prints @text with two blanks in front of each line. */
static void print_indented(const char *text)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        for (size_t len; *text; text += len) {
                len = strcspn(text, "\n") + 1;
                buf_printf(&b, "  %.*s", (int)len, text);
        }
        CLEANUP(free_textp) char *lines = buf_steal(&b);

        put_help_text(lines);
}

/* Whether the help of @command lists the option: options of a run are left to
 * --help, also for rerun. */
static bool has_own_help(const struct option_def *def, enum command command)
{
        bool launches = ON_LAUNCH >> command & 1;

        return is_shown(def, command) && def->commands != ON_ALL &&
               (command != COMMAND_RERUN || def->commands & ON(RERUN)) &&
               (!launches || (def->commands && (def->commands & ON_LAUNCH) != ON_LAUNCH));
}

static void print_command(enum command command)
{
        const struct option_command *c = &option_commands[command];
        bool launches = ON_LAUNCH >> command & 1;
        /* help and version end the line, and have all options only for that reason. */
        size_t listed = 0, n = command < COMMAND_HELP ? option_count : 0; /* with options */

        CLEANUP(free_textp)
        char *usage = xasprintf("usage: hnlaunch %s%s%s%s\n\n%s\n", c->name,
                                command < COMMAND_EXPLAIN || option_command_takes_words(command)
                                        ? " [OPTION...]"
                                        : "",
                                *c->words ? " " : "", c->words, c->help);

        put_help_text(usage);
        if (c->examples) {
                puts("");
                print_indented(c->examples);
        }
        for (size_t i = 0; i < n; i++)
                if (has_own_help(&option_table[i], command)) {
                        fputs(listed++ ? "" : "\n", stdout);
                        print_option_help(&option_table[i]);
                }
        if (launches)
                put_help_text("\nIt has the options of a run: hnlaunch help all lists them.\n");
        else if (command == COMMAND_RERUN)
                put_help_text("\nOptions of a run replace those of the recorded command line: "
                              "hnlaunch help all lists them.\n");
        else if (option_command_takes_words(command))
                put_help_text(
                        "\nAll commands have --color, -o, -q and -v: see hnlaunch help all.\n");
}

/* Prints all that is known of an option. */
static void print_one_option(const struct option_def *def)
{
        CLEANUP(free_textp) char *owners = option_owners(def);
        CLEANUP(free_textp)
        char *commands = xasprintf("\ncommands: %s\n", def->commands == ON_ALL ? "all" : owners);

        print_option_help(def);
        put_help_text(commands);
        if (!def->key)
                return;
        printf("key:      %s\nvariable: HNLAUNCH_", def->key);
        for (const char *c = def->key; *c; c++)
                /* As key_of_variable() of config_load.c reads names of variables. */
                putchar(isalnum((unsigned char)*c) ? toupper((unsigned char)*c) : '_');
        puts("");
}

static void print_exits(void)
{
        put_help_text("exit codes: the first failing rank's own, or\n\n");
        explain_print_exits();
        put_help_text(
                "\nThe last line on standard error says which it was and why; hnlaunch explain "
                "CODE\nsays more.\n");
}

/* The list of topics names this function, which prints the list. */
static void print_table(void);

/* A topic has a text or a function; the table is for programs and not listed. */
static const struct topic {
        const char *name, *text;
        void (*print)(void);
} topics[] = { { "all", NULL, print_all },    { "hostfile", hostfile, NULL },
               { "env", environment, NULL },  { "environment", environment, NULL },
               { "exit", NULL, print_exits }, { "config", config, NULL },
               { "table", NULL, print_table } };

/* Prints the commands of an option, with commas. */
static void print_owners(const struct option_def *def)
{
        const char *comma = "";

        for (enum command c = 0; c < COMMAND_HELP; c++)
                if (option_belongs(def, c)) {
                        printf("%s%s", comma, option_commands[c].name);
                        comma = ",";
                }
}

/* Prints a line for each command, topic, option, key, error and exit code, for programs: fields
 * with tabs between. Fields may be added at the end of a line. */
static void print_table(void)
{
        for (size_t i = 0; i < option_command_count; i++)
                printf("command\t%s\t%s\n", option_commands[i].name, option_commands[i].help);
        for (size_t i = 0; topics[i].print != print_table; i++)
                printf("topic\t%s\n", topics[i].name);
        for (size_t i = 0; i < option_count; i++) {
                const struct option_def *def = &option_table[i];
                char letter[] = { (char)def->letter, '\0' };

                if (def->flags & OPTION_HIDDEN)
                        continue;
                if (def->flags & OPTION_KEY) {
                        printf("key\t%s\t%s\t%s\n", def->key, def->arg ? def->arg : "", def->help);
                        continue;
                }
                printf("option\t%s\t%s\t%s\t%s\t%s\t%s\t", def->name, letter,
                       def->arg ? def->arg : "", def->flags & OPTION_OPTIONAL ? "optional" : "",
                       def->key ? def->key : "", def->help);
                print_owners(def);
                puts("");
        }
        explain_print_table();
}

/* Returns the topic with exactly this name, or NULL. */
static const struct topic *find_topic(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(topics); i++)
                if (!strcmp(topics[i].name, name))
                        return &topics[i];
        return NULL;
}

/* Finds the option of "--ppn", "ppn", "nproc_per_node", "-n" or "run.ppn"; NULL = none. */
static const struct option_def *find_option(const char *name)
{
        CLEANUP(free_textp) char *dashed = xstrdup(name);
        size_t dashes = strspn(name, "-");

        /* COMMAND_HELP has the letters of all commands. */
        if (dashes == 1 && name[1] && !name[2])
                return option_by_letter(name[1], COMMAND_HELP);
        for (char *c = dashed; *c; c++)
                if (*c == '_')
                        *c = '-';
        return strchr(name, '.') ? option_by_key(name) : option_by_name(dashed + dashes);
}

/* Finds a command by the whole name. False: none, and *ret is unchanged. */
static bool find_command(const char *name, enum command *ret)
{
        for (size_t i = 0; i < option_command_count; i++)
                if (!strcmp(option_commands[i].name, name)) {
                        *ret = (enum command)i;
                        return true;
                }
        return false;
}

bool options_have_help(const char *name)
{
        enum command command;

        return find_topic(name) || find_command(name, &command) || find_option(name);
}

char *options_suggest_help(const char *name)
{
        const char **names, *near;
        size_t n = 0;

        /* A number belongs to `hnlaunch explain`. */
        if (!strncasecmp(name, "HN", 2) ? name[2] && !name[2 + strspn(name + 2, "0123456789")]
                                        : *name && !name[strspn(name, "0123456789")])
                return xasprintf("hnlaunch explain %s tells cause and remedy", name);
        names = xcalloc(ARRAY_SIZE(topics) + option_command_count + option_count, sizeof(*names));
        /* The table for programs stands last. */
        for (size_t i = 0; topics[i].print != print_table; i++)
                names[n++] = topics[i].name;
        for (size_t i = 0; i < option_command_count; i++)
                names[n++] = option_commands[i].name;
        for (size_t i = 0; i < option_count; i++)
                if (!(option_table[i].flags & (OPTION_HIDDEN | OPTION_KEY)))
                        names[n++] = option_table[i].name;
        near = diag_did_you_mean(name + strspn(name, "-"), names, n);
        free(names);
        /* diag_did_you_mean() offers nothing for a word of two letters. */
        for (size_t i = 0; !near && i < option_command_count && strlen(name) > 1; i++)
                if (diag_distance(name, option_commands[i].name) == 1) /* short words, too */
                        near = option_commands[i].name;
        return near ? xasprintf("did you mean `%s`?", near) : NULL;
}

void options_print_help(const char *name, FILE *to)
{
        const struct topic *topic = name ? find_topic(name) : NULL;
        enum command command;

        if (topic && topic->print)
                topic->print();
        else if (topic)
                put_help_text(topic->text);
        else if (name && find_command(name, &command))
                print_command(command);
        else if (name)
                print_one_option(find_option(name));
        else if (to == stdout)
                /* Of hnlaunch without any word, which is wrong use. */
                put_help_text(screen);
        else
                fputs(screen, to);
}

void options_print_version(void)
{
        puts("hnlaunch " HNLAUNCH_VERSION);
}
