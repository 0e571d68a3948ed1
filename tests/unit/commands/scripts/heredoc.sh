#!/bin/bash
#SBATCH --nodes=1 --gres=gpu:1
cat > config.yaml <<EOF
lr: 1
srun: not a command
EOF
exec python train.py --config config.yaml
