#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An installation has everything, wherever it is: programs are built with pkg-config alone, run under the
# installed hnlaunch with its own agent and plug-ins, and nothing in it points to the build.
. "$(dirname "$0")/../lib/tap.sh"

[[ -f $PLAIN/build.ninja ]] && type -P meson pkg-config >/dev/null || skip_all 'no plain build, or no meson'
run meson introspect --buildoptions "$PLAIN"
option() { python3 -c 'import json, sys
print(next(o["value"] for o in json.load(open(sys.argv[1])) if o["name"] == sys.argv[2]))' "$OUT" "$1"; }
prefix=$(option prefix) libdir=$(option libdir) mandir=$(option mandir) libexec=$(option libexecdir)
python=$(type -P python3)

# Anywhere, not where it was configured for.
run meson install --no-rebuild --strip --quiet -C "$PLAIN" --destdir "$TMP/tree"
exits 'meson install' 0
root=$TMP/tree$prefix
HNLAUNCH=$root/bin/hnlaunch
has_file() { [[ -f $root/$1 ]]; }
for file in bin/hnlaunch "$libexec/hnlaunch/hnlaunch-agent-$(uname -m)" "$libdir/libhnlaunch.so.0" \
    "$libdir/libhnlaunch.so" "$libdir/pkgconfig/hnlaunch.pc" include/hnlaunch/hnlaunch.h include/hnlaunch/comm.h \
    include/hnlaunch/nccl.h share/bash-completion/completions/hnlaunch share/zsh/site-functions/_hnlaunch \
    share/fish/vendor_completions.d/hnlaunch.fish share/doc/hnlaunch/examples/hello.c \
    share/doc/hnlaunch/examples/torch_ddp.py share/doc/hnlaunch/tutorial.md share/doc/hnlaunch/performance.md; do
    ok "installed: ${file//$(uname -m)/MACHINE}" has_file "$file"
done
for page in man1/hnlaunch.1 man5/hnlaunch-hostfile.5 man5/hnlaunch-ssh.5 man7/hnlaunch-mpi.7 man7/hnlaunch-store.7 man7/hnlaunch-errors.7 man3/hn_group_split.3; do
    if [[ -f $PLAIN/docs/${page#*/} ]]; then
        ok "installed: $page" has_file "$mandir/$page"
    else
        skip "installed: $page" 'built without manual pages'
    fi
done

# --- a program from outside -------------------------------------------------------------------------

# Found by its folder alone, nothing said about where the tree was meant to be.
export PKG_CONFIG_PATH=$root/$libdir/pkgconfig
unset PKG_CONFIG_SYSROOT_DIR
is 'hnlaunch.pc has the version' "$(pkg-config --modversion hnlaunch)" "$("$HNLAUNCH" version | cut -d' ' -f2)"
is 'and wants no other package' "$(pkg-config --print-requires --print-requires-private hnlaunch)" ''
is 'compiler and linker get what they need' \
    "$(for word in $(pkg-config --cflags --libs hnlaunch); do
        case $word in
            -[IL]*) echo "${word:0:2}$(realpath "${word:2}")" ;;
            *) echo "$word" ;;
        esac
    done | xargs)" "-I$root/include -L$root/$libdir -lhnlaunch"
mkdir outside && cp "$root/share/doc/hnlaunch/examples/"*.[ch] outside
cat >outside/sum.cc <<'END'
#include <hnlaunch/comm.h>
#include <cstdlib>
#include <iostream>
int main()
{
        double sum = hn_init(nullptr) == HN_OK ? hn_rank() + 1 : 0;
        hn_comm *comm = nullptr;
        const char *backend = std::getenv("BACKEND");
        if (hn_comm_create(hn_world(), backend, HN_DEFAULT_TIMEOUT, &comm) != HN_OK ||
            hn_all_reduce(comm, &sum, &sum, 1, HN_FLOAT64, HN_SUM) != HN_OK) {
                std::cerr << hn_last_error() << "\n";
                return 1;
        }
        std::cout << "sum " << sum << "\n";
        hn_comm_free(comm);
        return hn_finalize();
}
END
# shellcheck disable=SC2046
{
    ok 'a C program' gcc -Wall -Werror -o hello outside/hello.c $(pkg-config --cflags --libs hnlaunch)
    ok 'a C++ program' g++ -std=c++17 -Wall -Werror -o sum outside/sum.cc \
        $(pkg-config --cflags --libs hnlaunch)
}
export LD_LIBRARY_PATH=$root/$libdir
is 'they take the installed library' "$(ldd hello | awk '/libhnlaunch/ { print $3 }')" "$root/$libdir/libhnlaunch.so.0"
hn --local 2 sh -c 'readlink /proc/$PPID/exe; exec ./hello'
exits 'the C program runs under the installed hnlaunch' 0
has 'as two ranks' "$OUT" '1 | hello from rank 1 of 2'
has 'with the installed agent' "$OUT" "0 | $root/$libexec/hnlaunch/hnlaunch-agent-$(uname -m)"
if [[ -f $root/$libdir/hnlaunch/hn_backend_gloo.so ]]; then
    hn --local 3 env BACKEND=gloo ./sum
    exits 'the C++ program finds the installed plug-in' 0
    has 'which adds' "$OUT" '2 | sum 6'
    mv "$root/$libdir/hnlaunch/hn_backend_gloo.so" "$TMP"
    hn --local 2 env BACKEND=gloo ./sum
    is 'and no other one' "$((RC != 0))" 1
    mv "$TMP/hn_backend_gloo.so" "$root/$libdir/hnlaunch/"
else
    skip 'the C++ program finds the installed plug-in' 'built without Gloo'
fi
cat >module.py <<END
import sys
sys.path.insert(0, "$root/share/doc/hnlaunch/examples/python")
import hnlaunch
assert hnlaunch.version() > 0
END
ok 'the module for Python finds the library' "$python" module.py

# --- the tree itself ----------------------------------------------------------------------------------

grep -rlF -e "$PLAIN" -e "$ROOT" "$TMP/tree" >"$OUT"
is 'no file names the folders of the build' "$(cat "$OUT")" ''
find "$TMP/tree" -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF && readelf -d "$1" 2>/dev/null' sh {} \; |
    grep -iE 'rpath|runpath' >"$OUT"
is 'no program has a search path of its own' "$(cat "$OUT")" ''
nm -D --defined-only "$root/$libdir/libhnlaunch.so.0" | awk '$3 !~ /^hn_/ { print $3 }' >"$OUT"
is 'the library exports hn_* alone' "$(cat "$OUT")" ''
if type -P man >/dev/null && [[ -d $root/$mandir/man1 ]] && man --version >/dev/null 2>&1 && type -P groff >/dev/null; then
    (
        cd "$root/$mandir" || exit 1
        for page in man*/*; do
            MANWIDTH=100 LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null | sed "s,^,$page: ,"
        done
    ) >"$OUT"
    is 'man shows every page without a warning' "$(head -n 5 "$OUT")" ''
else
    skip 'man shows every page without a warning' 'no man and groff here'
fi

# --- parts of it --------------------------------------------------------------------------------------

run meson install --no-rebuild --quiet -C "$PLAIN" --destdir "$TMP/runtime" --tags runtime
(cd "$TMP/runtime$prefix" && find . -name '*.h' -o -name '*.pc' -o -name '*.3' -o -name '*.c' -o -name libhnlaunch.so) >"$OUT"
is 'the tag runtime leaves headers and examples out' "$(cat "$OUT")" ''
HNLAUNCH=$TMP/runtime$prefix/bin/hnlaunch
LD_LIBRARY_PATH=$TMP/runtime$prefix/$libdir hn --local 2 ./hello
exits 'and runs jobs' 0
run meson install --no-rebuild --quiet -C "$PLAIN" --destdir "$TMP/devel" --tags devel
(cd "$TMP/devel$prefix" && find bin "$libexec" share/zsh "$libdir"/*.so.0 2>/dev/null) >"$OUT"
is 'the tag devel has nothing of that' "$(cat "$OUT")" ''
(cd "$TMP" && find runtime devel ! -type d | sed 's,^[a-z]*,,' | sort) >"$TMP/parts"
(cd "$TMP/tree" && find . ! -type d | sed 's,^\.,,' | sort) >"$TMP/whole"
same 'together they are the whole' "$TMP/parts" "$TMP/whole"
nothing_left 'nothing is left'
done_testing
