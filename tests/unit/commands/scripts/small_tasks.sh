#!/bin/bash
#SBATCH --job-name=sweep
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:8
#SBATCH --cpus-per-task=6
#SBATCH --mem=160G
srun ./simulate --seed 7 --out=/data/$USER
