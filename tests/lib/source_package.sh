# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
#   source_package NAME    downloads the source package of the distribution to the current folder, with apt lists of its own

source_package() {
    local file apt
    mkdir -p apt/parts apt/lists/partial || return
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
        [[ ! -f $file ]] || sed -E 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$file" >"apt/parts/${file##*/}" || return
    done
    apt=(apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$PWD/apt/parts"
        -o Dir::State::lists="$PWD/apt/lists" -o Dir::Cache="$PWD/apt" -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o APT::Sandbox::User=)
    "${apt[@]}" update >/dev/null
    "${apt[@]}" source --download-only --only-source "$1" >/dev/null
}
