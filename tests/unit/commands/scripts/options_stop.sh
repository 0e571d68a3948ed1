#!/bin/bash
#SBATCH --nodes=1
#SBATCH --nodes=3 # the last one counts
echo begin
#SBATCH --nodes=9
srun --nodes 2 -n2 torchrun a.py
