#!/bin/bash
# slurm-node NAME ADDRESS NUMBER CONFIGLESS ARGS...: one slurmd as if on a machine of its own: own network (a cable to br0 of
# the first process), host name, /run and spool. ARGS go to slurmd.
set -eu
name=$1 address=$2 number=$3 configless=$4
shift 4
hostname "$name"
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/slurm
mkdir -p /run/slurmd "/var/spool/slurm-node-$number" /var/spool/slurmd /var/log/slurm
mount --bind "/var/spool/slurm-node-$number" /var/spool/slurmd
if [ "$configless" = yes ]; then
  key=$(mktemp)
  cat /etc/slurm/slurm.key > "$key"
  mount -t tmpfs -o mode=755 tmpfs /etc/slurm
  install -m 600 -o slurm "$key" /etc/slurm/slurm.key
  : > /etc/slurm/plugstack.conf
  rm "$key"
fi
ip link set lo up
nsenter --target 1 --net -- ip link del "v$number" 2> /dev/null || true # of the same node's last life
mac=$(printf '02:00:00:01:%02x:%02x' $((number / 256)) $((number % 256))) # the same in each of the node's lives
ip link add eth0 address "$mac" type veth peer name "v$number" netns 1
ip addr add "$address/16" dev eth0
ip link set eth0 up
nsenter --target 1 --net -- ip link set "v$number" master br0 up
exec slurmd -D -b -N "$name" "$@"
