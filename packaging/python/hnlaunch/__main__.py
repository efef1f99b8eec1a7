# SPDX-License-Identifier: Apache-2.0
"""python -m hnlaunch: becomes the program hnlaunch of the same wheel, else the one in PATH."""

import os
import shutil
import sys
from importlib import metadata


def _program() -> str:
    places = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bin/hnlaunch")]  # pip install --target
    try:
        files = metadata.distribution("hnlaunch").files or ()
        places += [str(file.locate()) for file in files if file.parts[-2:] == ("bin", "hnlaunch")]
    except metadata.PackageNotFoundError:
        pass
    for place in filter(None, [*places, shutil.which("hnlaunch")]):
        if os.access(place, os.X_OK):
            return os.path.realpath(place)
    sys.exit("cannot find the program hnlaunch: it is neither in this wheel nor in PATH")


os.execv(_program(), ["hnlaunch"] + sys.argv[1:])
