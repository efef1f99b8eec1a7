# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Tables of ways in which jobs end, each run for real: source after tap.sh (and lab.sh).
#
#   endings_run TABLE...      runs the rows of the tables, several at once, and compares each with what it expects
#
# A row is NAME | RANKS | RANK | CODE | REASON | COMMAND. RANKS is the number of ranks, options of hnlaunch may follow;
# RANK is the rank that the last line and summary.json name ("-": none), CODE their exit code, REASON an extended regular
# expression for the last line; what the records and the commands that read them tell has to agree. COMMAND is split like a line of bash; there $python is the interpreter, $here the folder
# of the table, and $bin has the programs made of its *.c and *.cc. The line "@needs NAME" leaves out the rows
# below it unless needs_NAME succeeds, which sets "reason" if not; "@needs nothing" ends that. The line "@output full" gives
# the rows below it a standard output on a full disk, "@output closed" a pipe that has no reader. # begins a comment.
#
# The script that sources this file may set endings_hn, the command in front of hnlaunch's options, and endings_at,
# the options that place N ranks (the word N is replaced).

# shellcheck disable=SC2034
python=/usr/bin/python3
[[ -x $python ]] || python=$(type -P python3) || skip_all 'needs python3'
endings_hn=("$HNLAUNCH") endings_at=(--local N)
ENDINGS_AT_ONCE=${ENDINGS_AT_ONCE:-8}

needs_nothing() { :; }

needs_torch() {
    reason="$python has no PyTorch"
    "$python" -c 'import torch.distributed' 2>/dev/null
}

# Sets "mpi", the folder of a Python with MPICH and mpi4py.
needs_mpi() {
    local kit=${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests/mpi
    reason='cannot fetch MPICH'
    mpi=$kit/mpich5/bin
    bash "$ROOT/tests/lib/mpi_kit.sh" "$kit" mpich5 2>"$TMP/kit.log"
}

# Makes the C and C++ programs of a folder.
endings_build() { # FOLDER
    local source
    bin=$TMP/bin
    mkdir -p "$bin"
    for source in "$1"/*.c; do
        [[ ! -e $source ]] || cc -g -O0 -pthread -o "$bin/$(basename "$source" .c)" "$source" || return
    done
    for source in "$1"/*.cc; do
        [[ ! -e $source ]] || c++ -g -O0 -pthread -o "$bin/$(basename "$source" .cc)" "$source" || return
    done
}

trim() { # sets $trimmed
    trimmed=${1#"${1%%[![:space:]]*}"}
    trimmed=${trimmed%"${trimmed##*[![:space:]]}"}
}

# Makes an agent that, when its ranks have ended, asks for the metrics of the run: hnlaunch waits for its end and serves
# them meanwhile.
endings_agent() { # FOLDER
    cat >"$1/agent" <<END
#!/usr/bin/env bash
$(printf '%q' "${HNLAUNCH%/*}/hnlaunch-agent") "\$@"
code=\$?
url=\$(sed -n 's|^hnlaunch: metrics at http://||p' $(printf '%q' "$1/err"))
port=\${url##*:}
exec 3<>"/dev/tcp/127.0.0.1/\${port%/*}"
printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
cat <&3 >$(printf '%q' "$1/metrics")
exit \$code
END
    chmod +x "$1/agent"
}

# Opens the standard output of a row.
endings_output() { # FOLDER file|full|closed
    case $2 in
        full) exec >/dev/full ;;
        closed)
            mkfifo "$1/pipe"
            exec 3<>"$1/pipe" >"$1/pipe" 3<&-
            ;;
        *) exec >"$1/out" ;;
    esac
}

# Starts one row in the background, in a folder of its own.
endings_start() { # FOLDER RANKS OUTPUT COMMAND
    local folder=$1 ranks=$2 output=$3 words command
    mkdir -p "$folder/work"
    eval "command=($4)"
    words=("${endings_at[@]/#N/${ranks%% *}}")
    # shellcheck disable=SC2206
    [[ $ranks != *' '* ]] || words+=(${ranks#* })
    if [[ ${words[0]} == --local ]]; then
        endings_agent "$folder"
        words+=(--metrics 0 --agent "$folder/agent")
    fi
    (
        trap - EXIT
        cd "$folder/work" || exit
        endings_output "$folder" "$output"
        code=0
        env --default-signal=INT XDG_STATE_HOME="$folder/state" timeout -k 5 "$(scaled 60)" "${endings_hn[@]}" --log-dir "$folder/logs" \
            "${words[@]}" "${command[@]}" 2>"$folder/err" || code=$?
        echo "$code" >"$folder/code"
    ) &
}

# Prints one line "RANK CODE VERDICT" for the summary.json in a folder, then what else tells something else: report as
# text, JSON and page, ps, logs, metrics. None of them may name a rank as the first to diverge that only followed, and
# none may tell a reason twice. The build with sanitizers, which takes ten times as long to start, reads the records for
# the text of report; the plain one tells the rest.
endings_records() { # FOLDER
    local plain=$PLAIN/hnlaunch
    [[ -x $plain ]] || plain=$HNLAUNCH
    "$python" - "$1" "$HNLAUNCH" "$plain" <<'END'
import glob, html, json, os, re, subprocess, sys
folder, sanitized, plain = sys.argv[1:]
paths = glob.glob(folder + "/logs/*/summary.json")
s = json.load(open(paths[0])) if paths else {}
rank, code, verdict, run = (s.get(name) for name in ("rank", "code", "verdict", "run"))
print("-" if rank is None else rank, code, verdict)

def ask(*words, hnlaunch=plain):
    p = subprocess.run([hnlaunch, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       env=dict(os.environ, XDG_STATE_HOME=folder + "/state"))
    if p.returncode:
        print("%s ends with %d: %s" % (words, p.returncode, p.stderr))
    return p.stdout, p.stderr

def find_reason():
    of = re.match(r"(?:failed|stopped) after [^:]*: (.*)  \(exit \d+\)$", verdict, re.S)
    more = (r"; (\d+ ranks? (had to be killed \(SIGKILL\)|killed at once by another SIGINT)"
            r"|\d+ bytes of .* not written)$")
    return of and re.sub(more, "", of[1])

def compare_times(page):
    with open(os.path.dirname(paths[0]) + "/events.ndjson", encoding="utf-8") as f:
        ends = [e["us"] for e in map(json.loads, f) if e["ev"] == "rank.exited"]
    units = {"ms": 1e3, "s": 1e6}
    for words in re.findall(r"<title>((?:exited with code|killed by) [^<]*)</title>", page):
        of = re.search(r" after (\d+)(\.\d)?(ms|s)$", words)
        one = units[of[3]] / (10 if of[2] else 1) if of else 0  # of the last digit
        if of and not any(abs(float(of[1] + (of[2] or "")) * units[of[3]] - us) <= one for us in ends):
            print("the page counts the end of a rank from another time:", words, ends)

def compare_metrics(report):
    told = {"stop": None, "hang": None}
    with open(folder + "/metrics", encoding="utf-8") as f:
        text = f.read()
    with open(os.path.dirname(paths[0]) + "/events.ndjson", encoding="utf-8") as f:
        hung = any(json.loads(line)["ev"] == "run.hang" for line in f)
    for what, reason in re.findall(r'^hnlaunch_(stop|hang)_info{reason="(.*)"} 1$', text, re.M):
        told[what] = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], reason)
    reason = find_reason()
    if "hnlaunch_info" not in text or told["stop"] != reason:
        print("the metrics have another reason:", told["stop"], "not", reason)
    if told["hang"] != (report["why"] if hung else None):
        print("the metrics have another hang:", told["hang"], "not", report["why"])

if run:
    text = ask("report", run, hnlaunch=sanitized)[0]
    if verdict not in text.splitlines()[1]:
        print("report has another verdict:", text)
    reason = find_reason() if verdict.startswith("failed") else None  # of an order it is a word, as SIGINT
    if reason and text.count(reason) > 1:
        print("report tells the reason twice:", text)
    first = re.search(r"^failures, the cause first:\n(.*)", text, re.M)
    if first and rank is not None and "rank %d on " % rank not in first[1]:
        print("report has another failure first:", first[0])
    others = re.search(r"^other failures:\n((?:  .*\n)+)", text, re.M)
    if others and rank is not None and " rank %d on " % rank in others[1]:
        print("report has the cause among the others:", others[0])
    with open(folder + "/err", encoding="utf-8", errors="replace") as f:
        screen = f.read()
    if reason and s["origin"] == "launcher" and screen.count(reason) > 1:
        print("the screen tells the reason twice:", screen)
    report = json.loads(ask("report", "--json", run)[0])
    if (report["verdict"], report["code"]) != (verdict, code):
        print("report --json has another verdict:", report)
    if rank is not None and s["failures"] and s["failures"][0].get("rank") != rank:
        print("summary.json has another failure first:", s["failures"])
    echoes = {f["rank"] for f in s["failures"] if f["echo"]}
    if report["divergence"] and report["divergence"]["rank"] in echoes:
        print("the first to diverge only follows:", report["divergence"])
    page = html.unescape(ask("report", "--html", "-", run)[0])
    if verdict not in page or "<th>Words</th></tr>\n</table>" in page:
        print("the page has another verdict, or a table without rows")
    compare_times(page)
    told = [r for r in json.loads(ask("ps", "--json")[0])["runs"] if r["run"] == run]
    if [r.get("code") for r in told] != [code]:
        print("ps has another code:", told)
    if verdict not in ask("logs", run)[1]:
        print("logs has another verdict:", ask("logs", run)[1])
    if os.path.exists(folder + "/agent"):
        compare_metrics(report)
END
}

endings_check() { # FOLDER NAME RANK CODE REASON
    local folder=$1 name=$2 rank=$3 code=$4 reason=$5 last wrong='' named=- records
    OUT=$folder/out ERR=$folder/err RC=$(cat "$folder/code" 2>/dev/null)
    last=$(tail -n 1 "$folder/err")
    [[ ! $last =~ :\ rank\ ([0-9]+)\ on ]] || named=${BASH_REMATCH[1]}
    [[ $RC == "$code" ]] || wrong+="exit code $RC, not $code"$'\n'
    [[ $named == "$rank" ]] || wrong+="the last line names rank $named, not $rank"$'\n'
    [[ $last =~ $reason ]] || wrong+="the last line has no \"$reason\""$'\n'
    records=$(endings_records "$folder" 2>&1)
    [[ $records == "$rank $code ${last#hnlaunch: }" ]] || wrong+="records have other words: $records"$'\n'
    if [[ -z $wrong ]]; then
        pass "$name"
    else
        fail "$name" "$wrong"
    fi
}

endings_run() { # TABLE...
    local table line fields trimmed reason='' left_out='' output=file i=0 n=0 here bin ranks=() names=() rows=()
    for table; do
        here=$(cd "${table%/*}" && pwd) output=file
        ok "the programs of ${table##*/} are made" endings_build "$here"
        while IFS= read -r line; do
            [[ $line != '#'* && $line == *[![:space:]]* ]] || continue
            if [[ $line == '@needs '* ]]; then
                left_out=
                "needs_${line#@needs }" || left_out=$reason
                continue
            fi
            if [[ $line == '@output '* ]]; then
                output=${line#@output }
                continue
            fi
            IFS='|' read -r -a fields <<<"$line"
            trim "${fields[0]}"
            names+=("$trimmed")
            rows+=("$line")
            if [[ -n $left_out ]]; then
                ranks+=("$left_out")
                continue
            fi
            ranks+=('')
            while n=$(jobs -rp | wc -l) && ((n >= ENDINGS_AT_ONCE)); do wait -n; done
            trim "${fields[1]}"
            endings_start "$TMP/row$i" "$trimmed" "$output" "${line#*|*|*|*|*|}"
            i=$((i + 1))
        done <"$table"
    done
    wait
    n=0
    for i in "${!rows[@]}"; do
        if [[ -n ${ranks[i]} ]]; then
            skip "${names[i]}" "${ranks[i]}"
            continue
        fi
        IFS='|' read -r -a fields <<<"${rows[i]}"
        for line in 2 3 4; do
            trim "${fields[line]}"
            fields[line]=$trimmed
        done
        endings_check "$TMP/row$n" "${names[i]}" "${fields[@]:2:3}"
        n=$((n + 1))
    done
}
