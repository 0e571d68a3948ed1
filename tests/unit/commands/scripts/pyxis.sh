#!/bin/bash
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH "--container-image=nvcr.io#nvidia/pytorch:24.10-py3"
#SBATCH --qos=high
#SBATCH --reservation=week42
srun --container-mounts=/data:/data --container-workdir=/data/code python3 pretrain.py --batch 32
