#!/bin/bash
#SBATCH --nodes=64
#SBATCH --ntasks-per-node=8
#SBATCH --gres=gpu:8
#SBATCH --cpus-per-task=4
#SBATCH --mem=120G
#SBATCH --time=48:00:00
#SBATCH --requeue
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((10000 + $SLURM_JOB_ID % 20000))
srun --mpi=pmix --cpu-bind=none python train.py --config conf/a.yaml
