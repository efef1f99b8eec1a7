# SPDX-License-Identifier: Apache-2.0
"""Transformers' Trainer with a tiny model that is made from its configuration: nothing is downloaded.

usage: hf_trainer.py FOLDER
"""
import sys

import torch
import torch.distributed as dist
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed


class Counting(torch.utils.data.Dataset):
    """Rows of successive numbers."""

    def __len__(self):
        return 64

    def __getitem__(self, i):
        row = (torch.arange(8) + i) % 32
        return {"input_ids": row, "labels": row}


class Losses(TrainerCallback):
    def __init__(self):
        self.losses = []

    def on_log(self, args, state, control, logs=None, **_):
        if logs and "loss" in logs:
            self.losses.append(float(logs["loss"]))


def train(folder, steps, resume=None):
    set_seed(1)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=8, n_embd=16, n_layer=1, n_head=2,
                                       bos_token_id=0, eos_token_id=0))
    losses = Losses()
    arguments = TrainingArguments(output_dir=folder, use_cpu=True, per_device_train_batch_size=2, max_steps=steps,
                                  learning_rate=0.01, logging_steps=2, save_steps=4, report_to=[], disable_tqdm=True,
                                  ddp_backend="gloo", seed=1)
    trainer = Trainer(model=model, args=arguments, train_dataset=Counting(), eval_dataset=Counting(), callbacks=[losses])
    trainer.train(resume_from_checkpoint=resume)
    return trainer, losses.losses


def main():
    folder = sys.argv[1]
    trainer, losses = train(folder, 8)
    ranks = trainer.args.world_size
    assert ranks == (dist.get_world_size() if dist.is_initialized() else 1), ranks
    weights = torch.cat([p.detach().flatten() for p in trainer.model.parameters()]).double().sum()
    if ranks > 1:
        sums = [torch.zeros_like(weights) for _ in range(ranks)]
        dist.all_gather(sums, weights)
        assert all(s == sums[0] for s in sums), sums
    assert trainer.is_world_process_zero() == (trainer.args.process_index == 0)
    if trainer.is_world_process_zero():
        assert losses[-1] < losses[0], losses
    loss = trainer.evaluate()["eval_loss"]
    again, _ = train(folder, 12, resume=True)
    assert again.state.global_step == 12, again.state.global_step
    if again.is_world_process_zero():
        print("hf_trainer: ok on %d ranks, loss %.3f" % (ranks, loss), flush=True)
    if dist.is_initialized():
        # An interpreter that exits with threads of Gloo may abort: "terminate called without an active exception".
        dist.destroy_process_group()


main()
