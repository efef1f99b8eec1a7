# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel of a built tree: a backend of PEP 517, and a program: backend.py BUILD FOLDER

The wheel is what `meson install --tags runtime` installs, in these places of an environment:

    bin/hnlaunch                       the program itself; no Python runs before it
    libexec/hnlaunch/                  agents, hnlaunch-ssh.so, -table.so and -top.so, where the program looks for them
    libexec/hnlaunch/lib/              the libraries that they need
    share/                             manual and completions
    site-packages/hnlaunch/            the module; its folder lib has libhnlaunch.so.0 and the plug-in for NCCL

Needs Python 3.11, meson, patchelf, binutils, and Debian's licences of the libraries. The same build gives the same
bytes.
"""

import base64
import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import bundle  # noqa: E402

MODULE = "hnlaunch"
SHARED = ("man", "bash-completion", "zsh", "fish")


def _introspect(build, what):
    out = subprocess.run(["meson", "introspect", what, str(build)], check=True, stdout=subprocess.PIPE)
    return json.loads(out.stdout)


def _lay_out(build, root, data):
    """Installs the build below root as the wheel has it; returns the licensed libraries."""
    options = {o["name"]: o["value"] for o in _introspect(build, "--buildoptions")}
    if options["b_sanitize"] != "none":
        raise RuntimeError(f"cannot make a wheel of {build}: it was built with sanitizers")
    stage = root.parent / "stage"
    subprocess.run(["meson", "install", "--no-rebuild", "--strip", "--quiet", "--tags", "runtime", "-C", str(build),
                    "--destdir", str(stage)], check=True)
    installed = stage / options["prefix"].lstrip("/")
    libdir, lib = installed / options["libdir"], root / MODULE / "lib"

    shutil.copytree(HERE / MODULE, root / MODULE, ignore=shutil.ignore_patterns("__pycache__", "lib"))
    shutil.copytree(installed / "bin", data / "scripts")
    shutil.copytree(installed / options["libexecdir"] / MODULE, data / "data/libexec" / MODULE)
    for name in SHARED:
        if (installed / "share" / name).is_dir():
            shutil.copytree(installed / "share" / name, data / "data/share" / name)
    lib.mkdir()
    shutil.copyfile(libdir / "libhnlaunch.so.0", lib / "libhnlaunch.so.0")
    # Gloo's plug-in stays out, for 0.5 MB and with fitting licences: Gloo wants GLIBCXX_3.4.30, which manylinux_2_34
    # does not have, and its libibverbs, loaded first, would be taken for NCCL's.
    shutil.copyfile(libdir / MODULE / "hn_backend_nccl.so", lib / "hn_backend_nccl.so")
    bundle.search(lib / "hn_backend_nccl.so", "$ORIGIN")

    libexec = data / "data/libexec" / MODULE
    # The second folder is the same within the unpacked wheel, for auditwheel.
    programs = {p: "$ORIGIN/../libexec/hnlaunch/lib:$ORIGIN/../data/libexec/hnlaunch/lib"
                for p in (data / "scripts").iterdir()}
    programs.update({p: "$ORIGIN/lib" for p in libexec.iterdir()})
    return bundle.bundle({p: seen for p, seen in programs.items() if bundle.is_elf(p) and bundle.needed(p)},
                         libexec / "lib")


def _metadata(info, project, version, tag):
    lines = [
        "Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version}",
        f"Summary: {project['description']}", f"License: {project['license']['text']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Classifier: {line}" for line in project["classifiers"])]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: hnlaunch\nRoot-Is-Purelib: false\nTag: {tag}\n")
    groups = project.get("entry-points", {})
    if groups:
        (info / "entry_points.txt").write_text("\n".join(
            f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
            for group, entries in groups.items()))


def _pack(root, wheel, record):
    """Writes all files below root, and the record of their hashes, as a wheel."""
    lines = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def add(name, content, mode):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)

        for path in sorted(p for p in root.rglob("*") if p.is_file()):
            name, content = path.relative_to(root).as_posix(), path.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}\n")
            add(name, content, 0o755 if path.stat().st_mode & 0o100 else 0o644)
        add(record, "".join(lines) + f"{record},,\n", 0o644)


def make_wheel(build, folder):
    """Builds the wheel of a built tree into a folder; returns its name."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    version = _introspect(build, "--projectinfo")["version"]
    with tempfile.TemporaryDirectory(prefix="hnlaunch-wheel.") as temporary:
        root = Path(temporary) / "wheel"
        data, info = root / f"{MODULE}-{version}.data", root / f"{MODULE}-{version}.dist-info"
        root.mkdir()
        libraries = _lay_out(build, root, data)
        info.mkdir()
        shutil.copyfile(HERE.parents[1] / "LICENSE", info / "LICENSE")
        bundle.add_licences(libraries, info / "licenses")
        major, minor = bundle.glibc_of(p for p in root.rglob("*") if p.is_file() and bundle.is_elf(p))
        tag = f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"
        _metadata(info, project, version, tag)
        name = f"{MODULE}-{version}-{tag}.whl"
        Path(folder).mkdir(parents=True, exist_ok=True)
        _pack(root, Path(folder) / name, f"{info.name}/RECORD")
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return make_wheel(Path((config_settings or {}).get("build") or HERE.parents[1] / "build"), wheel_directory)


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("there is no source distribution: a wheel is built from a built tree of hnlaunch")


if __name__ == "__main__":
    print(Path(sys.argv[2]) / make_wheel(Path(sys.argv[1]), sys.argv[2]))
