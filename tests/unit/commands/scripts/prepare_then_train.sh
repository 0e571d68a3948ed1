#!/bin/bash
#SBATCH -N2 --gpus-per-node=8 --dependency=afterok:4711
python prepare.py --out /data/set
WANDB_MODE=offline srun --ntasks-per-node=1 env LOG=1 torchrun --nproc_per_node=gpu train.py
rm -rf /tmp/set
