#!/bin/bash
#SBATCH --array=0-9
srun python train.py --seed $SLURM_ARRAY_TASK_ID
