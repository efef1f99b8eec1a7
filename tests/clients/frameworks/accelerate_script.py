# SPDX-License-Identifier: Apache-2.0
"""A script for Accelerate: prepare, gather, split_between_processes, save_state.

usage: accelerate_script.py FOLDER
"""
import os
import sys

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object, set_seed
from torch.utils.data import DataLoader, TensorDataset


def main():
    accelerator = Accelerator(cpu=True)
    ranks = accelerator.num_processes
    set_seed(1)
    x = torch.linspace(-1, 1, 64).reshape(-1, 1)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = DataLoader(TensorDataset(x, 2 * x), batch_size=4)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    seen = []
    for inputs, wanted in data:
        seen.append(accelerator.gather_for_metrics(inputs).flatten())
        optimizer.zero_grad()
        accelerator.backward(torch.nn.functional.mse_loss(model(inputs), wanted))
        optimizer.step()
    assert torch.equal(torch.cat(seen).sort().values, x.flatten()), seen
    weight = accelerator.unwrap_model(model).weight.detach().flatten()
    weights = accelerator.gather(weight)
    assert len(weights) == ranks and bool((weights == weights[0]).all()), weights
    with accelerator.split_between_processes(list(range(10)), apply_padding=False) as mine:
        pass
    assert sorted(gather_object(mine)) == list(range(10)), mine
    words = ["rank %d" % accelerator.process_index]
    broadcast_object_list(words)
    assert words == ["rank 0"], words
    local = gather_object([accelerator.is_local_main_process])
    with accelerator.main_process_first():
        pass
    accelerator.save_state(os.path.join(sys.argv[1], "state"))
    accelerator.wait_for_everyone()
    accelerator.load_state(os.path.join(sys.argv[1], "state"))
    if accelerator.is_main_process:
        print("accelerate_script: ok on %d ranks, %s, local mains %d" % (
            ranks, accelerator.distributed_type.value, sum(local)), flush=True)
    accelerator.end_training()


main()
