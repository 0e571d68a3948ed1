#!/bin/bash
#SBATCH --job-name=llama-70b
#SBATCH -N 4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH -c 96
#SBATCH --mem=900G
#SBATCH -t 2-00:00:00
#SBATCH -o logs/%x-%j.out
#SBATCH --mail-type=END
#SBATCH -p gpu -A ml

module load cuda/12.4
source ~/venv/bin/activate
export OMP_NUM_THREADS=12
export NCCL_DEBUG=INFO
nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
head_node=${nodes[0]}
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)
echo "Head: $head_node_ip"
cd /workspace/llm
srun torchrun \
  --nnodes $SLURM_NNODES \
  --nproc_per_node 8 \
  --rdzv_id $RANDOM \
  --rdzv_backend c10d \
  --rdzv_endpoint $head_node_ip:29500 \
  train.py --lr 3e-4 "--name=a b" > train.log 2>&1
echo done
