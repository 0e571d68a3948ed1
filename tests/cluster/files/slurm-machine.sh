#!/bin/bash
# slurm-machine ROOTFS WORK HOSTNAME NODES GPUS: the first process of a bare Slurm's namespaces (tests/cluster/slurm.py).
# Makes a root file system of its own (an overlay in memory over ROOTFS), a /dev with GPUS NVIDIA device nodes, a bridge for
# NODES machines; says "ready"; ends, and with it everything in the pid namespace, when its standard input ends.
set -eu
rootfs=$1 work=$2 name=$3 nodes=$4 gpus=$5
hostname "$name"
mount -t tmpfs -o mode=755 tmpfs "$work/memory"
mkdir "$work"/memory/{upper,work,root}
root=$work/memory/root
mount -t overlay overlay -o "lowerdir=$rootfs,upperdir=$work/memory/upper,workdir=$work/memory/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=1777 tmpfs "$root/run" # pid files of daemons that are not root
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir -p "$root"/dev/{pts,shm} "$root/srv/rest"
mkdir -m 1777 "$root/run/slurm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
for device in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
  IFS=: read -r file major minor <<< "$device"
  mknod -m 666 "$root/dev/$file" c "$major" "$minor"
done
for ((i = 0; i < gpus; i++)); do mknod -m 666 "$root/dev/nvidia$i" c 195 "$i"; done
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount --bind "$work/rest" "$root/srv/rest"
cp -r "$work/files/." "$root/"
ip link set lo up
ip link add br0 address 02:00:00:00:00:01 type bridge # a bridge without one changes it with every port
ip addr add 10.77.0.1/16 dev br0
ip link set br0 up
cd "$root"
exec chroot . /bin/bash -c 'echo ready; read -r _ || exit 0'
