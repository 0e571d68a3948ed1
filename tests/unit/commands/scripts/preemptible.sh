#!/bin/bash
#SBATCH --job-name=ckpt
#SBATCH --nodes=1
#SBATCH --gres=gpu:8
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
trap 'scontrol requeue $SLURM_JOB_ID' USR1
srun torchrun --standalone --nproc_per_node=8 train.py --resume auto &
wait
