
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
KUBESLURM_RUN=$(type -P ch-run) || { echo "kubeslurm: no ch-run on $SLURMD_NODENAME" >&2; exit 127; }
export USER=$(id -un)
[ -e /images/registry.example%team%train+1 ] || { echo "kubeslurm: no image /images/registry.example%team%train+1 on $SLURMD_NODENAME" >&2; exit 125; }
KUBESLURM_MOUNTS=(--bind "/run/kubeslurm/$SLURM_JOB_ID/${SLURM_RESTART_COUNT:-0}"/volumes/hub:/etc/hub --bind "/var/spool/kubeslurm/$SLURM_JOB_ID"/scratch:/scratch)
export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID
export LOCAL_WORLD_SIZE=8 NODE_RANK=$SLURM_NODEID GROUP_RANK=$SLURM_NODEID
export OMP_NUM_THREADS=4
[ ! -f /images/registry.example%team%train+1/ch/environment ] || while IFS= read -r KUBESLURM_LINE; do
  case ${KUBESLURM_LINE%%=*} in
    KUBESLURM_*|MASTER_*|*RANK|*WORLD_SIZE|PET_*|OMP_NUM_THREADS|CUDA_VISIBLE_DEVICES|*[!A-Za-z0-9_]*|[!A-Za-z_]*|'') ;;
    *) export "$KUBESLURM_LINE" ;;
  esac
done < /images/registry.example%team%train+1/ch/environment
for KUBESLURM_PAIR in "${KUBESLURM_PAIRS[@]}"; do export "$KUBESLURM_PAIR"; done
exec /usr/bin/env \
  MODE='it'"'"'s' \
  PYTHONUNBUFFERED=1 \
  "$KUBESLURM_RUN" \
  --write-fake \
  --cd \
  /workspace \
  "${KUBESLURM_MOUNTS[@]}" \
  /images/registry.example%team%train+1 \
  -- \
  python3 \
  train.py
TASK

messages=/var/log/jobs/$SLURM_JOB_ID/srun.err
srun --nodes=1 --ntasks=8 --ntasks-per-node=8 --cpus-per-task=4 --gres=gpu:8 --gpu-bind=none --distribution=block --kill-on-bad-exit=1 --mpi=none --output=/var/log/jobs/%j/%t.out \
  /bin/bash -c "$task"
