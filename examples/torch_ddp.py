# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on handwritten digits with DistributedDataParallel.

    hnlaunch --local 4 python3 torch_ddp.py
    hnlaunch -H hosts.txt --ppn gpu python3 torch_ddp.py --epochs 20

It is a plain torch.distributed script: torchrun and others start it as well. GPUs with NCCL where
there are any, CPUs with Gloo elsewhere. It reads data/digits.csv beside it (or --data FILE): copy both.
"""
import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def digits(path):
    """8 x 8 pictures, and which digit each of them shows."""
    with open(path) as f:
        table = torch.tensor([[int(x) for x in line.split(",")] for line in f])
    return TensorDataset(table[:, :64].float() / 16, table[:, 64])


def accuracy(model, data, device):
    images, labels = data.tensors
    with torch.no_grad():
        guesses = model(images.to(device)).argmax(1).cpu()
    return (guesses == labels).float().mean().item()


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=os.path.join(here, "data", "digits.csv"))
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32, help="of each rank")
    args = parser.parse_args()

    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)

    data = digits(args.data)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=args.batch, sampler=sampler)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    model = DistributedDataParallel(model.to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros((), device=device)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            total += loss.detach() / len(loader)
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print("epoch %d: loss %.4f" % (epoch + 1, total.item() / dist.get_world_size()), flush=True)

    if dist.get_rank() == 0:
        print("%d ranks, accuracy %.1f %%" % (dist.get_world_size(), 100 * accuracy(model, data, device)),
              flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
