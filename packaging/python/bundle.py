# SPDX-License-Identifier: Apache-2.0
"""Makes programs and libraries independent of the system's libraries: those that a manylinux tag does not promise are
copied beside them, with search paths relative to themselves, and with their licences.

The search path is DT_RPATH, which also holds against an LD_LIBRARY_PATH of the user.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Dict, Iterable, List, Set, Tuple

# What every system of a manylinux tag has (PEP 600): the libraries of glibc.
_BASELINE = re.compile(r"^(lib(c|m|dl|pthread|rt|resolv|util)\.so\.\d|ld-linux.*)$")
_STATIC_LIBRARIES = ("libc.a", "libuv_a.a", "libsodium.a", "libz.a", "libinih.a")  # of the agent and hnlaunch
_DOCUMENTS, _COMMON = Path("/usr/share/doc"), Path("/usr/share/common-licenses")


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def is_elf(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(path: Path) -> List[str]:
    """Returns the libraries that a file asks the loader for; none when it is static."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", _output("readelf", "-dW", str(path)))


def _places(path: Path) -> Dict[str, Path]:
    """Asks the loader where the libraries of a file, and theirs, are: those that not every system has."""
    found = re.findall(r"^\s*(\S+) => (/\S+|not found)", _output("ldd", str(path)), re.M)
    missing = [name for name, place in found if place == "not found"]
    if missing:
        raise RuntimeError(f"cannot find {', '.join(missing)}, which {path.name} needs")
    return {name: Path(place) for name, place in found if not _BASELINE.match(name)}


def glibc_of(paths: Iterable[Path]) -> Tuple[int, int]:
    """Returns the newest version of glibc that one of the files needs."""
    text = "".join(_output("readelf", "-VW", str(path)) for path in paths)
    versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", text)
    if "GLIBC_ABI_DT_RELR" in text:
        versions.append(("2", "36"))
    return max(((int(major), int(minor)) for major, minor in versions), default=(2, 17))


def search(path: Path, folders: str) -> None:
    """Sets where a file looks for its libraries."""
    subprocess.run(["patchelf", "--force-rpath", "--set-rpath", folders, str(path)], check=True)


def bundle(files: Dict[Path, str], folder: Path) -> Set[Path]:
    """Copies the libraries of dynamic files to a folder, and makes files and copies that need one look there.

    files: each with the folder as seen from it ("$ORIGIN/..."). Returns where the libraries came from.
    """
    places: Dict[str, Path] = {}
    for path in files:
        places.update(_places(path))
    folder.mkdir()
    paths = dict(files)
    for name, place in places.items():
        shutil.copyfile(place, folder / name)
        paths[folder / name] = "$ORIGIN"
    for path, seen in paths.items():
        if places.keys() & set(needed(path)):
            search(path, seen)
    return set(places.values())


def _package_of(path: Path) -> str:
    """Returns the Debian package of a file."""
    for name in (os.path.realpath(path), str(path), str(path).replace("/usr/lib/", "/lib/", 1)):
        found = subprocess.run(["dpkg-query", "-S", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    raise RuntimeError(f"cannot find the licence of {path}: it belongs to no Debian package")


def add_licences(libraries: Iterable[Path], folder: Path) -> None:
    """Writes the licences of libraries, and of those that the agent contains, with the versions of their sources."""
    static = (Path(_output("gcc", f"-print-file-name={name}").strip()) for name in _STATIC_LIBRARIES)
    folder.mkdir(parents=True, exist_ok=True)
    sources = set()
    for package in {_package_of(path) for path in (*libraries, *static)}:
        source = _output("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", package)
        sources.add(source)
        licence = (_DOCUMENTS / package / "copyright").read_text()
        (folder / f"{source.split()[0]}.txt").write_text(licence)
        for name in re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", licence):
            shutil.copyfile(_COMMON / name, folder / f"{name}.txt")
    (folder / "libraries.txt").write_text(
        "Debian's sources of the libraries in this wheel:\n\n" + "".join(f"{line}\n" for line in sorted(sources)))
