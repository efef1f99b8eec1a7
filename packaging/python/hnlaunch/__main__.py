# SPDX-License-Identifier: Apache-2.0
"""python -m hnlaunch: becomes the program hnlaunch of the same wheel, else the one in PATH."""

import os
import shutil
import sys
from importlib import metadata


def _program() -> str:
    try:
        for file in metadata.distribution("hnlaunch").files or ():
            if file.parts[-2:] == ("bin", "hnlaunch"):
                return os.path.realpath(str(file.locate()))
    except metadata.PackageNotFoundError:
        pass
    found = shutil.which("hnlaunch")
    if not found:
        sys.exit("cannot find the program hnlaunch: it is neither in this wheel nor in PATH")
    return found


os.execv(_program(), ["hnlaunch"] + sys.argv[1:])
