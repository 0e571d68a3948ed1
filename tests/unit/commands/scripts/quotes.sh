#!/bin/bash
#SBATCH --nodes=1 --gres=gpu:2 --comment="it's"
export GREETING='say "$HOME"'
torchrun train.py 'a$(id)b' "c\$\$d" $'e\tf' g\ h ""
