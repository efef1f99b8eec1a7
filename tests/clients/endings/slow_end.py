# SPDX-License-Identifier: Apache-2.0
"""One rank fails in some way and ends in its own time; the others fail of its loss half a second later.

usage: slow_end.py RANK HOW [SLEEP]
"""
import os
import sys
import time

if os.environ["RANK"] == sys.argv[1]:
    raise ValueError("sample 17 has no label")
time.sleep(0.5)
raise RuntimeError("Connection closed by peer [192.0.2.7]:4711")
