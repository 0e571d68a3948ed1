#!/bin/bash
#SBATCH -J vision -N 1 -n 1 -c 16 --gpus=2 --mem=64G
SIF=docker://registry.example/vision:2
apptainer exec --nv --bind /scratch:/data "$SIF" python train.py --root /data
