#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trees of sysfs of made machines, and hwloc's opinion of such a tree.

make NAME DIR   writes DIR/sys of the machine NAME; prints the addresses of its GPUs, one a line
names           prints the names
record TAR DIR  unpacks a tree that hwloc-gather-topology has recorded to DIR/NAME, completes it with lists of processors that
                the kernel of that time did not write beside its masks, and judges it
judge DIR       prints what libhwloc reads from DIR/sys, as tests/lib/bind_probe.c does; exit 77: no libhwloc
"""
import ctypes
import glob
import os
import subprocess
import sys


def machine(nodes, smt="apart", gpus=(), sockets=None, memory=(), offline=(), distances=None, cores=None, bridges=(),
            nics=()):
    """@nodes: cores of each NUMA node; smt: numbers of the siblings: none, apart (p and p + cores), or beside
    (2p, 2p + 1); sockets: nodes of a socket; memory: nodes without processors; gpus: numa_node of each;
    cores: processors of each core, in order, in place of smt; bridges: the PCI folders of the GPUs below devices;
    nics: (name, PCI folder, numa_node, states of its ports)."""
    total = sum(nodes)
    if cores is None:
        cores = {"none": [[p] for p in range(total)], "apart": [[p, p + total] for p in range(total)],
                 "beside": [[2 * p, 2 * p + 1] for p in range(total)]}[smt]
    members, first = [], 0
    for count in nodes:
        members.append(cores[first:first + count])
        first += count
    return {"nodes": members, "gpus": list(gpus), "sockets": sockets or 1, "memory": list(memory),
            "offline": set(offline), "distances": distances or {}, "bridges": list(bridges), "nics": list(nics)}


def switch(number, branch):
    """The folder of a branch of a PCI switch: two switches for each host bridge."""
    return f"pci{number // 2:04x}:15/{number // 2:04x}:15:01.0/{number:04x}:16:00.0/{number:04x}:17:{branch:02x}.0"


MACHINES = {
    "one-socket": machine([8]),
    "desktop-hybrid": machine([12], cores=[[2 * p, 2 * p + 1] for p in range(8)] + [[16 + p] for p in range(4)],
                              gpus=[-1]),
    "two-sockets-without-smt": machine([16, 16], "none", gpus=[0, 1]),
    "siblings-beside": machine([4, 4], "beside", gpus=[1, 0]),
    "four-sockets": machine([6] * 4, gpus=[0, 1, 2, 3]),
    "eight-sockets": machine([14] * 8, gpus=[7]),
    "nps4": machine([16] * 8, sockets=4, gpus=[3, 3, 1, 1, 7, 7, 5, 5]),
    "offline-processors": machine([8, 8], offline=[3, 8, 16 + 3, 16 + 15], gpus=[0, 1]),
    "offline-siblings": machine([8, 8], offline=range(16, 32), gpus=[0, 1]),
    "offline-node": machine([4, 4], "none", offline=range(4, 8), gpus=[0, 1]),
    "dgx-h100": machine([56, 56], gpus=[0] * 4 + [1] * 4),
    # Behind each switch a GPU and its port; further ports for storage, and one without a link.
    "dgx-h100-nics": machine([56, 56], gpus=[0] * 4 + [1] * 4, bridges=[switch(k, 0) for k in range(8)],
                             nics=[(f"mlx5_{k + 3}", switch(k, 1), k // 4, ["4: ACTIVE"]) for k in range(8)] +
                             [("mlx5_0", "pci0000:80", 0, ["4: ACTIVE"]), ("mlx5_1", switch(0, 2), 0, ["1: DOWN"]),
                              ("mlx5_2", "pci0000:90", 1, ["4: ACTIVE"])]),
    "dgx-a100-nics": machine([64, 64], gpus=[0] * 4 + [1] * 4, bridges=[switch(k // 2, k % 2) for k in range(8)],
                             nics=[(f"mlx5_{k}", switch(k // 2, 2 + k % 2), k // 4, ["4: ACTIVE"]) for k in range(8)]),
    # Of two ports one has no link, and of a virtual machine nobody knows the bridges.
    "ports": machine([4, 4], gpus=[0, 1], bridges=[switch(0, 0), switch(2, 0)],
                     nics=[("mlx5_0", switch(1, 0), 0, ["1: DOWN", "4: ACTIVE"]), ("mlx5_1", switch(2, 1), 1, ["4: ACTIVE", "4: ACTIVE"]),
                           ("mlx5_2", switch(2, 2), 1, ["5: ACTIVE_DEFER"])]),
    "virtual-nics": machine([48, 48], gpus=[0, 0, 1, 1, -1], bridges=[f"vmbus/{k}/pci{k:04x}:00" for k in range(5)],
                            nics=[(f"mlx5_{k}", f"vmbus/{9 + k}/pci{9 + k:04x}:00", k // 2, ["4: ACTIVE"]) for k in range(4)]),
    "mi300x": machine([96, 96], gpus=[0] * 4 + [1] * 4),
    "gh200": machine([72], "none", gpus=[0], memory=range(1, 9)),
    "gb200": machine([72, 72], "none", gpus=[0, 0, 1, 1], memory=range(2, 34)),
    # The GPU says its own memory, which is nearest to one node.
    "gb300": machine([72, 72], "none", gpus=[2, 10, 18, 26], memory=range(2, 34),
                     distances={2: {0: 80, 1: 120}, 10: {0: 80, 1: 120}, 18: {0: 120, 1: 80}, 26: {0: 120, 1: 80}}),
    "memory-between": machine([8, 8], gpus=[2], memory=[2], distances={2: {0: 80, 1: 80}}),
}


def listed(numbers):
    """The kernel's list of numbers."""
    runs = []
    for n in sorted(numbers):
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def address(number):
    return f"{number // 8:04x}:{0x1b + number % 8 * 0x10:02x}:00.0"


def nic_address(number):
    return f"{0x100 + number:04x}:01:00.0"


def put_device(folder, bridges, name):
    """Makes the folder of a PCI device, and the link to it."""
    os.makedirs(f"{folder}/sys/devices/{bridges}/{name}")
    os.makedirs(f"{folder}/sys/bus/pci/devices", exist_ok=True)
    os.symlink(f"{folder}/sys/devices/{bridges}/{name}", f"{folder}/sys/bus/pci/devices/{name}")


def make(name, folder):
    m = MACHINES[name]
    made = set()

    def put(path, text):
        path = f"{folder}/sys/{path}"
        if os.path.dirname(path) not in made:
            made.add(os.path.dirname(path))
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as f:
            f.write(text + "\n")

    everything = [cpu for node in m["nodes"] for core in node for cpu in core]
    online = set(everything) - m["offline"]
    put("devices/system/cpu/online", listed(online))
    put("devices/system/cpu/possible", listed(everything))
    put("devices/system/cpu/present", listed(everything))
    core_id = 0
    for number, node in enumerate(m["nodes"]):
        socket = number // m["sockets"]
        fellows = [cpu for other in m["nodes"][socket * m["sockets"]:(socket + 1) * m["sockets"]]
                   for core in other for cpu in core]
        for core in node:
            for cpu in core:
                folder_of = f"devices/system/cpu/cpu{cpu}"
                put(f"{folder_of}/online", str(int(cpu in online)))
                if cpu not in online:
                    continue
                siblings, package = listed(online & set(core)), listed(online & set(fellows))
                put(f"{folder_of}/topology/physical_package_id", str(socket))
                put(f"{folder_of}/topology/core_id", str(core_id))
                for file in ("thread_siblings_list", "core_cpus_list"):
                    put(f"{folder_of}/topology/{file}", siblings)
                for file in ("core_siblings_list", "package_cpus_list"):
                    put(f"{folder_of}/topology/{file}", package)
                for file, cpus in (("thread_siblings", core), ("core_cpus", core), ("core_siblings", fellows),
                                   ("package_cpus", fellows)):
                    put(f"{folder_of}/topology/{file}", mask(online & set(cpus)))
            core_id += 1
    ids = list(range(len(m["nodes"]))) + m["memory"]
    with_cpus = [n for n, node in enumerate(m["nodes"]) if any(cpu in online for core in node for cpu in core)]
    put("devices/system/node/online", listed(ids))
    put("devices/system/node/possible", listed(ids))
    put("devices/system/node/has_cpu", listed(with_cpus))
    put("devices/system/node/has_memory", listed(ids))
    for n in ids:
        cpus = {cpu for core in (m["nodes"][n] if n < len(m["nodes"]) else []) for cpu in core} & online
        put(f"devices/system/node/node{n}/cpulist", listed(cpus))
        put(f"devices/system/node/node{n}/cpumap", mask(cpus))
        put(f"devices/system/node/node{n}/meminfo", f"Node {n} MemTotal: 1048576 kB")
        far = m["distances"].get(n, {})
        put(f"devices/system/node/node{n}/distance", " ".join(str(10 if k == n else far.get(k, 200 if far else 20)) for k in ids))
    for number, node in enumerate(m["gpus"]):
        if m["bridges"]:
            put_device(folder, m["bridges"][number], address(number))
        put(f"bus/pci/devices/{address(number)}/numa_node", str(node))
        print(address(number))
    for number, (nic, bridges, node, states) in enumerate(m["nics"]):
        put_device(folder, bridges, nic_address(number))
        put(f"bus/pci/devices/{nic_address(number)}/numa_node", str(node))
        for port, state in enumerate(states, 1):
            put(f"class/infiniband/{nic}/ports/{port}/state", state)
        os.symlink(f"{folder}/sys/bus/pci/devices/{nic_address(number)}", f"{folder}/sys/class/infiniband/{nic}/device")


def mask(cpus):
    """The kernel's mask: words of 32 bits."""
    value = sum(1 << cpu for cpu in cpus)
    words = []
    while value or not words:
        words.append(f"{value & 0xffffffff:08x}")
        value >>= 32
    return ",".join(reversed(words))


def unmask(text):
    """The list of a mask."""
    value = 0
    for word in text.split(","):
        value = value << 32 | int(word, 16)
    return listed(n for n in range(value.bit_length()) if value >> n & 1)


def read_text(name, missing):
    if not os.path.exists(name):
        return missing
    with open(name, encoding="ascii") as f:
        return f.read().strip("\n\0")


def record(archive, folder):
    unused = "cache cpuidle cpufreq hugepages* power class bus pci* firmware net memory* mc acpi*".split()
    subprocess.run(["tar", "-xf", archive, "-C", folder] + [f"--exclude=*/{name}" for name in unused], check=True)
    root, = glob.glob(f"{folder}/*")
    system = f"{root}/sys/devices/system"

    def complete(name, text):
        if not os.path.exists(name):
            with open(name, "w", encoding="ascii") as f:
                f.write(text + "\n")

    # The order matters: newer kernels have core_cpus and package_cpus, some trees nothing else.
    for old, new in (("node/node*/cpumap", "cpulist"), ("cpu/cpu*/topology/thread_siblings", "thread_siblings_list"),
                     ("cpu/cpu*/topology/core_cpus", "thread_siblings_list"),
                     ("cpu/cpu*/topology/core_siblings", "core_siblings_list"),
                     ("cpu/cpu*/topology/package_cpus", "core_siblings_list")):
        for name in glob.glob(f"{system}/{old}"):
            with open(name, encoding="ascii") as f:
                complete(f"{os.path.dirname(name)}/{new}", unmask(f.read().strip("\n\0")))
    nodes = [int(name[len(system) + len("/node/node"):]) for name in glob.glob(f"{system}/node/node[0-9]*")]
    if nodes:
        complete(f"{system}/node/online", listed(nodes))
    complete(f"{system}/cpu/online", listed(
        int(name[len(system) + len("/cpu/cpu"):]) for name in glob.glob(f"{system}/cpu/cpu[0-9]*")
        if read_text(f"{name}/online", "1") != "0"))
    return judge(root)


class Object(ctypes.Structure):
    """struct hwloc_obj of hwloc 2, up to what is read here."""


Object._fields_ = [
    ("type", ctypes.c_int), ("subtype", ctypes.c_char_p), ("os_index", ctypes.c_uint), ("name", ctypes.c_char_p),
    ("total_memory", ctypes.c_uint64), ("attr", ctypes.c_void_p), ("depth", ctypes.c_int),
    ("logical_index", ctypes.c_uint), ("next_cousin", ctypes.c_void_p), ("prev_cousin", ctypes.c_void_p),
    ("parent", ctypes.c_void_p), ("sibling_rank", ctypes.c_uint), ("next_sibling", ctypes.c_void_p),
    ("prev_sibling", ctypes.c_void_p), ("arity", ctypes.c_uint), ("children", ctypes.c_void_p),
    ("first_child", ctypes.c_void_p), ("last_child", ctypes.c_void_p), ("symmetric_subtree", ctypes.c_int),
    ("memory_arity", ctypes.c_uint), ("memory_first_child", ctypes.c_void_p), ("io_arity", ctypes.c_uint),
    ("io_first_child", ctypes.c_void_p), ("misc_arity", ctypes.c_uint), ("misc_first_child", ctypes.c_void_p),
    ("cpuset", ctypes.c_void_p)]
PACKAGE, CORE, NUMA = 1, 2, 13  # enum hwloc_obj_type_t of hwloc 2


def own_processors(folder, node):
    """None: the tree has no such node, and hwloc made one up."""
    name = f"{folder}/sys/devices/system/node/node{node}/cpulist"
    return read_text(name, None)


def judge(folder):
    os.environ |= {"HWLOC_FSROOT": folder, "HWLOC_COMPONENTS": "linux,stop", "HWLOC_THISSYSTEM": "0"}
    try:
        hwloc = ctypes.CDLL("libhwloc.so.15")
    except OSError:
        return 77
    topology = ctypes.c_void_p()
    hwloc.hwloc_topology_init(ctypes.byref(topology))
    hwloc.hwloc_topology_set_flags(topology, ctypes.c_ulong(1))  # HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED
    if hwloc.hwloc_topology_load(topology) < 0:
        sys.exit("hwloc cannot load the tree")
    hwloc.hwloc_get_obj_by_depth.restype = ctypes.POINTER(Object)
    lines = []
    for kind, word in ((NUMA, "node"), (PACKAGE, "socket"), (CORE, "core")):
        depth = hwloc.hwloc_get_type_depth(topology, kind)
        index = 0
        while True:
            found = hwloc.hwloc_get_obj_by_depth(topology, depth, index)
            if not found:
                break
            text = ctypes.c_char_p()
            hwloc.hwloc_bitmap_list_asprintf(ctypes.byref(text), ctypes.c_void_p(found.contents.cpuset))
            number = found.contents.os_index
            if kind == NUMA and own_processors(folder, number):
                lines.append(f"node {number}: {text.value.decode()}")
            elif kind == NUMA and own_processors(folder, number) is not None:  # of memory only: the processors that are nearest
                lines.append(f"memory {number}: {text.value.decode()}")
            elif kind != NUMA:
                lines.append(f"{word}: {text.value.decode()}")
            index += 1
    print("\n".join(sorted(lines)))
    return 0


def main():
    command, *arguments = sys.argv[1:]
    if command == "names":
        print("\n".join(MACHINES))
        return 0
    return {"make": make, "record": record, "judge": judge}[command](*arguments)


sys.exit(main())
