
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
export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID
export LOCAL_WORLD_SIZE=8 NODE_RANK=$SLURM_NODEID GROUP_RANK=$SLURM_NODEID
export OMP_NUM_THREADS=4
for KUBESLURM_PAIR in "${KUBESLURM_PAIRS[@]}"; do export "$KUBESLURM_PAIR"; done
exec /usr/bin/env \
  MODE='it'"'"'s' \
  PYTHONUNBUFFERED=1 \
  python3 \
  train.py
TASK

srun --nodes=$SLURM_JOB_NUM_NODES --ntasks=$SLURM_JOB_NUM_NODES --ntasks-per-node=1 --mpi=none /bin/bash -c 'mkdir -p "/var/spool/kubeslurm/$SLURM_JOB_ID"/scratch
materials="/run/kubeslurm/$SLURM_JOB_ID/${SLURM_RESTART_COUNT:-0}"
for ((i = 0; i < 600; i++)); do [ -d "$materials" ] && break; sleep 0.1; done
if [ ! -d "$materials" ]; then
  echo "kubeslurm: ConfigMaps and Secrets did not come to $SLURMD_NODENAME within 60 s" >&2
  exit 125
fi' || exit 125
messages=/var/log/jobs/$SLURM_JOB_ID/srun.err
srun --nodes=1 --ntasks=8 --ntasks-per-node=8 --cpus-per-task=4 --gres=gpu:8 --gpu-bind=none --distribution=block --kill-on-bad-exit=1 --mpi=none --output=/var/log/jobs/%j/%t.out --container-image='registry.example#team/train:1' --container-mounts="/run/kubeslurm/$SLURM_JOB_ID/${SLURM_RESTART_COUNT:-0}"/volumes/hub:/etc/hub:ro,"/var/spool/kubeslurm/$SLURM_JOB_ID"/scratch:/scratch,"/run/kubeslurm/$SLURM_JOB_ID":"/run/kubeslurm/$SLURM_JOB_ID":ro --container-workdir=/workspace --container-env=MASTER_ADDR,MASTER_PORT --no-container-mount-home --no-container-remap-root --no-container-entrypoint \
  /bin/bash -c "$task"
