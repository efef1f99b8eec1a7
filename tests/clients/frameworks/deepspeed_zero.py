# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed on processors: init_distributed("gloo"), a training with ZeRO, a checkpoint of all ranks.

usage: deepspeed_zero.py [--local_rank N] STAGE FOLDER
"""
import argparse
import os

import deepspeed
import torch
from deepspeed import comm


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=-1)
    parser.add_argument("stage", type=int)
    parser.add_argument("folder")
    args = parser.parse_args()
    deepspeed.init_distributed("gloo")
    ranks, rank = comm.get_world_size(), comm.get_rank()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(1, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    engine, _, _, _ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters(), config={
        "train_micro_batch_size_per_gpu": 4,
        "zero_optimization": {"stage": args.stage},
        "zero_allow_untested_optimizer": True,
        "optimizer": {"type": "Adam", "params": {"lr": 0.01, "torch_adam": True}},
    })
    x = torch.linspace(-1, 1, 64).reshape(-1, 1)[rank::ranks]
    losses = []
    for _ in range(20):
        loss = torch.nn.functional.mse_loss(engine(x), 2 * x)
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0], losses
    total = torch.tensor([float(rank)])
    comm.all_reduce(total)
    assert total.item() == ranks * (ranks - 1) / 2, total
    assert engine.local_rank == int(os.environ["LOCAL_RANK"]), engine.local_rank
    engine.save_checkpoint(args.folder, tag="end")
    path, _ = engine.load_checkpoint(args.folder, tag="end")
    assert path is not None
    comm.barrier()
    if rank == 0:
        print("deepspeed_zero: ok on %d ranks, stage %d" % (ranks, args.stage), flush=True)
    comm.destroy_process_group()


main()
