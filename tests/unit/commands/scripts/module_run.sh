#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks=2
#SBATCH --gpus=16
#SBATCH --cpus-per-gpu=6
export MASTER_ADDR="$(hostname -s)"
export MASTER_PORT=29400
for host in a b; do
  echo $host
done
srun -l --kill-on-bad-exit=1 python -m torch.distributed.run --nnodes=2 --node_rank=$SLURM_PROCID \
  --nproc_per_node=8 --master_addr=$MASTER_ADDR --master_port=$MASTER_PORT train.py --seed ${SEED:-1}
