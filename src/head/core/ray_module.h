/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ray_module: how the Python module hnlaunch._ray (packaging/python/hnlaunch/_ray.py) is started
 *
 * `python3 -m` would search the current folder first, which may be a repository of others with
 * modules of these names, and so would an import before sys.path is changed: sys alone is built in.
 */
#pragma once

/* The argument of python3 -c; the module's own arguments follow. No single quote is in it. */
#define RAY_MODULE_CODE                                                                            \
        "import sys; sys.path[:] = [p for p in sys.path if p]; import runpy; "                     \
        "runpy.run_module(\"hnlaunch._ray\", None, \"__main__\", True)"
