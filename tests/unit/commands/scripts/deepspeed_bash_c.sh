#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --gres=gpu:a100:8 --constraint=nvlink
#SBATCH --time=1-12
set -euo pipefail
srun bash -c '
  echo "node $SLURM_NODEID"
  deepspeed --num_gpus 8 train.py --ds config.json
'
