# SPDX-License-Identifier: Apache-2.0
"""Lightning's Trainer: trains, logs the mean over all ranks, writes a checkpoint and goes on from it.

usage: lightning_trainer.py NODES PROCESSES FOLDER    an ordinary script, as for torchrun or Slurm
"""
import os
import sys

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

NODES, PROCESSES, FOLDER = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


class Line(L.LightningModule):
    """Learns y = 2x."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.seen = []

    def training_step(self, batch, _):
        x, y = batch
        self.seen.extend(x.flatten().tolist())
        loss = torch.nn.functional.mse_loss(self.layer(x), y)
        self.log("loss", loss, sync_dist=True)
        self.log("rank", float(self.global_rank), sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def trainer(epochs):
    return L.Trainer(accelerator="cpu", devices=PROCESSES, num_nodes=NODES, strategy="ddp", max_epochs=epochs,
                     default_root_dir=FOLDER, logger=False, enable_progress_bar=False, enable_model_summary=False)


def main():
    L.seed_everything(1)
    x = torch.linspace(-1, 1, 64).reshape(-1, 1)
    data = DataLoader(TensorDataset(x, 2 * x), batch_size=4)
    model = Line()
    first = trainer(2)
    first.fit(model, data)
    ranks = NODES * PROCESSES
    assert first.world_size == ranks, first.world_size
    assert first.callback_metrics["rank"].item() == (ranks - 1) / 2, first.callback_metrics
    assert len(model.seen) == 2 * 64 // ranks, len(model.seen)
    weights = first.strategy.all_gather(model.layer.weight.detach()).flatten()
    assert len(weights) == ranks and bool((weights == weights[0]).all()), weights
    places = first.strategy.all_gather(torch.tensor([first.global_rank, first.node_rank, first.local_rank]))
    assert places.tolist() == [[r, r // PROCESSES, r % PROCESSES] for r in range(ranks)], places

    path = os.path.join(FOLDER, "line.ckpt")
    first.save_checkpoint(path)
    again = trainer(4)
    other = Line()
    again.fit(other, data, ckpt_path=path)
    assert again.current_epoch == 4 and len(other.seen) == 2 * 64 // ranks, (again.current_epoch, len(other.seen))
    if again.is_global_zero:
        print("lightning_trainer: ok on %d ranks, %s" % (
            ranks, type(again.strategy.cluster_environment).__name__), flush=True)


main()
