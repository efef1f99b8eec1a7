#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the tests of PETSc's tutorials that use several ranks.

usage: petsc_tests.py FOLDER NAME...

Reads the comment /*TEST ... TEST*/ at the end of FOLDER/NAME.c. A line is: the name, the ranks, the name of the
test, the arguments. Tests that need more than a usual PETSc (requires:), or a display, are left out.
"""

import re
import sys

folder, names = sys.argv[1], sys.argv[2:]
for name in names:
    text = open(f"{folder}/{name}.c", encoding="utf-8").read()
    block = text[text.rindex("/*TEST") : text.rindex("TEST*/")]
    for test in re.split(r"\n   test:\n", block)[1:]:
        test = test.split("\n   testset:")[0]
        fields = dict(re.findall(r"^      (\w+): *(.*?) *$", test, re.M))
        args = fields.get("args", "")
        if int(fields.get("nsize", 1)) < 2 or "requires" in fields or "test:" in test or re.search(r"draw|[{}$]|_view", args):
            continue
        print(name, fields["nsize"], f"{name}_{fields.get('suffix', '1')}", args)
