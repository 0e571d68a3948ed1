#!/bin/bash
#SBATCH --nodes=1
srun python train.py 'oops
