#!/bin/bash
#SBATCH --nodes=1
#SBATCH --mem=lots
srun python train.py
