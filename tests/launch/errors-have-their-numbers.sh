#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Wrong command lines, files and variables are told by the number that `hnlaunch explain` explains.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

told() { # NUMBER CODE ARG...: the launch ends with CODE, and the number is among its errors and warnings
    hn "${@:3}"
    is "$1 (${*:3}): $2" "$RC" "$2"
    has "$1 (${*:3}) is told" "$ERR" "[$1]: "
}
hosts() { # NUMBER CODE TEXT: of a hostfile
    printf '%b' "$3" >hosts
    told "$1" "$2" plan -H hosts
}

hosts HN107 65 'a\0b\n'
hosts HN108 65 '# nothing\n'
hosts HN109 65 'a /* b\n'
hosts HN111 65 'a slots=x\n'
hosts HN112 65 'slots=2\n'
hosts HN113 65 'a[2-1]\n'
hosts HN115 65 'a 8\n'
hosts HN116 65 'a slots=\n'
hosts HN117 65 'a gpus=0,0\n'
hosts HN118 65 'a slots=2 gpus=0\n'
told HN102 69 --agent nowhere -w a true
told HN105 64 plan -w 'a[00001-65536],b'
told HN306 69 plan -w 'a[0001-1100]:1024'

printf 'no equals sign\n' >variables
told HN120 66 --local 1 --env-file nowhere true
told HN121 65 --local 1 --env-file variables true
told HN123 0 --local 1 -x NOT_SET_HERE true
told HN124 66 --local 1 --stdin nowhere true
mkdir gone
cd gone || exit 1
rmdir ../gone
told HN125 66 --local 1 true
cd "$TMP/work" || exit 1

told HN702 64 --local 1 --np
told HN707 64 -N 2 true
told HN708 64 true
told HN710 64 help nothing
told HN717 64 --local 1 -o nothing true
told HN718 64 explain HN100
HNLAUNCH_RUN_NOTHING=1 told HN711 0 --local 1 true
for text in '[run]\nppn = x\n HN712' '[run\n HN713' '[run]\nprogram=x\nprogram=y\n HN722' '[rolle x]\n HN723'; do
    printf '%b\n' "${text% *}" >job
    told "${text##* }" 78 config --job job
done
: >.hnlaunch.ini
told HN719 0 config
rm .hnlaunch.ini
told HN720 66 config --job nowhere
told HN721 64 config --job job --job job
mkdir -p "$XDG_CONFIG_HOME/hnlaunch/config.ini"
told HN716 78 config
rmdir "$XDG_CONFIG_HOME/hnlaunch/config.ini"

touch file
told HN903 73 --local 1 --log-dir file/logs true
done_testing
