
IFS= read -r -d '' task <<'TASK' || true
materials="/run/kubeslurm/$SLURM_JOB_ID/${SLURM_RESTART_COUNT:-0}"
for ((i = 0; i < 600; i++)); do [ -d "$materials" ] && break; sleep 0.1; done
if [ ! -d "$materials" ]; then
  echo "kubeslurm: ConfigMaps and Secrets did not come to $SLURMD_NODENAME within 60 s" >&2
  exit 125
fi
KUBESLURM_PAIRS=() # by names that no user's variable can have
load() { # by bytes: a value need not be text
  local LC_ALL=C pair
  while IFS= read -r -d '' pair; do
    KUBESLURM_PAIRS+=("$pair")
    printf -v "$2${pair%%=*}" %s "${pair#*=}"
  done < "$materials/$1"
}
load from KUBESLURM_F_
load env KUBESLURM_V_
export RANK=$SLURM_PROCID WORLD_SIZE=1 PET_NODE_RANK=$SLURM_PROCID
export PET_MASTER_ADDR=$MASTER_ADDR PET_MASTER_PORT=$MASTER_PORT
for name in ${!SLURM_@} ${!SRUN_@} ${!PMI_@} ${!PMIX_@}; do unset "$name"; done
for KUBESLURM_PAIR in "${KUBESLURM_PAIRS[@]}"; do export "$KUBESLURM_PAIR"; done
exec /usr/bin/env \
  MODE='it'"'"'s' \
  PYTHONUNBUFFERED=1 \
  PET_NNODES=1 \
  PET_NPROC_PER_NODE=auto \
  /bin/sh \
  /etc/rc \
  --backend \
  nccl
TASK

srun --nodes=$SLURM_JOB_NUM_NODES --ntasks=$SLURM_JOB_NUM_NODES --ntasks-per-node=1 --mpi=none /bin/bash -c 'mkdir -p "/var/spool/kubeslurm/$SLURM_JOB_ID"/scratch
materials="/run/kubeslurm/$SLURM_JOB_ID/${SLURM_RESTART_COUNT:-0}"
for ((i = 0; i < 600; i++)); do [ -d "$materials" ] && break; sleep 0.1; done
if [ ! -d "$materials" ]; then
  echo "kubeslurm: ConfigMaps and Secrets did not come to $SLURMD_NODENAME within 60 s" >&2
  exit 125
fi' || exit 125
messages=/var/log/jobs/$SLURM_JOB_ID/srun.err
srun --nodes=1 --ntasks=1 --ntasks-per-node=1 --cpus-per-task=32 --gres=gpu:8 --gpu-bind=none --distribution=block --kill-on-bad-exit=1 --mpi=none --output=/var/log/jobs/%j/%t.out --container-image='registry.example#team/train:1' --container-mounts="/run/kubeslurm/$SLURM_JOB_ID/${SLURM_RESTART_COUNT:-0}"/volumes/hub:/etc/hub:ro,"/var/spool/kubeslurm/$SLURM_JOB_ID"/scratch:/scratch,"/run/kubeslurm/$SLURM_JOB_ID":"/run/kubeslurm/$SLURM_JOB_ID":ro --container-env=MASTER_ADDR,MASTER_PORT --no-container-mount-home --no-container-remap-root --container-entrypoint \
  /bin/bash -c "$task"
