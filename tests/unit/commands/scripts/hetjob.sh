#!/bin/bash
#SBATCH --nodes=1
#SBATCH hetjob
#SBATCH --nodes=4 --gres=gpu:8
srun a : b
