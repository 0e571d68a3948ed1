#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gres=gpu:4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=10
#SBATCH --mem=0
#SBATCH --time=0-02:00:00
export NCCL_SOCKET_IFNAME=^docker0,lo
export PYTHONFAULTHANDLER=1
srun python3 train.py trainer.devices=4 trainer.num_nodes=$SLURM_NNODES
