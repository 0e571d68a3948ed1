#!/bin/bash
#SBATCH --job-name=sd_xl
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --exclusive
export HF_HOME=/data/hf
GPUS=4
LAUNCHER="unused"
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
srun accelerate launch --num_machines $SLURM_NNODES --num_processes $((SLURM_NNODES * GPUS)) \
  --machine_rank $SLURM_NODEID --main_process_ip $MASTER_ADDR --main_process_port 29500 train.py
