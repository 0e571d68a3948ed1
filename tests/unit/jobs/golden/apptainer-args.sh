
IFS= read -r -d '' task <<'TASK' || true
mkdir -p "/var/spool/kubeslurm/$SLURM_JOB_ID"/scratch
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
KUBESLURM_RUN=$(type -P apptainer) || { echo "kubeslurm: no apptainer on $SLURMD_NODENAME" >&2; exit 127; }
KUBESLURM_MOUNTS=(--bind "/run/kubeslurm/$SLURM_JOB_ID/${SLURM_RESTART_COUNT:-0}"/volumes/hub:/etc/hub:ro --bind "/var/spool/kubeslurm/$SLURM_JOB_ID"/scratch:/scratch)
export RANK=$SLURM_PROCID WORLD_SIZE=1 PET_NODE_RANK=$SLURM_PROCID
export PET_MASTER_ADDR=$MASTER_ADDR PET_MASTER_PORT=$MASTER_PORT
for name in ${!SLURM_@} ${!SRUN_@} ${!PMI_@} ${!PMIX_@}; do unset "$name"; done
for name in MASTER_ADDR MASTER_PORT RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK OMP_NUM_THREADS CUDA_VISIBLE_DEVICES ${!PET_@}; do [ -z "${!name+x}" ] || export "APPTAINERENV_$name=${!name}"; done
for KUBESLURM_PAIR in "${KUBESLURM_PAIRS[@]}"; do export "APPTAINERENV_$KUBESLURM_PAIR"; done
exec /usr/bin/env \
  APPTAINERENV_MODE='it'"'"'s' \
  APPTAINERENV_PYTHONUNBUFFERED=1 \
  APPTAINERENV_PET_NNODES=1 \
  APPTAINERENV_PET_NPROC_PER_NODE=auto \
  "$KUBESLURM_RUN" \
  run \
  --no-home \
  --nv \
  "${KUBESLURM_MOUNTS[@]}" \
  docker://registry.example/team/train:1 \
  --backend \
  nccl
TASK

messages=/var/log/jobs/$SLURM_JOB_ID/srun.err
srun --nodes=1 --ntasks=1 --ntasks-per-node=1 --cpus-per-task=32 --gres=gpu:8 --gpu-bind=none --distribution=block --kill-on-bad-exit=1 --mpi=none --output=/var/log/jobs/%j/%t.out \
  /bin/bash -c "$task"
