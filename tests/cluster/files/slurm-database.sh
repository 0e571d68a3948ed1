# A hook of the root file systems with accounting (tests/cluster/images.py): mmdebstrap has sh run this text, the root is $1.
# Makes MariaDB's tables anew, small, with slurmdbd's own in them: the cluster "bare", the accounts physics and chemistry,
# the users alice (physics by default) and bob (chemistry by default), each in both. A bare Slurm only starts on them.
# Nothing of it runs outside of the root: the inner script is read by the shell that chroot starts, and by no other.
set -eu
unshare --mount --net --pid --uts --fork --kill-child --propagation private sh -euc '
  hostname controller
  ip link set lo up
  ip link add br0 type bridge # slurmdbd listens only where there is an address besides the loopback
  ip addr add 10.77.0.1/16 dev br0
  ip link set br0 up
  mount -t proc proc "$1/proc"
  mount --rbind /dev "$1/dev"
  mount -t tmpfs -o mode=1777 tmpfs "$1/run"
  mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
  exec chroot "$1" /bin/sh -eu' make "$1" << 'INNER_SCRIPT'
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
until_done() { for _ in $(seq 300); do "$@" > /dev/null 2>&1 && return; sleep 0.1; done; "$@"; }
user=$(stat -c %U /var/lib/mysql 2> /dev/null || stat -c %U /var/lib/mariadb)
data=/var/lib/slurm-database
socket=$(mariadbd --no-defaults --verbose --help 2>&1 < /dev/null | awk '$1 == "socket" && $2 { print $2 }')
rm -rf /var/lib/mysql /var/lib/mariadb # 150 MB, which each Slurm would copy into memory
cat > /etc/mysql/mariadb.conf.d/99-slurm.cnf << CNF
[client-server]
socket=$socket
skip-ssl
[mariadbd]
user=$user
datadir=$data
socket=$socket
pid-file=${socket%.sock}.pid
skip-networking
innodb_log_file_size=4M
innodb_undo_tablespaces=0
innodb_buffer_pool_size=64M
innodb_flush_log_at_trx_commit=2
innodb_lock_wait_timeout=900
CNF
cat > /etc/slurm/slurmdbd.conf << CNF
DbdHost=controller
SlurmUser=slurm
AuthType=auth/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt_hs256.key
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
PidFile=/run/slurmdbd/slurmdbd.pid
TrackWCKey=yes
CNF
cat > /etc/slurm/slurm.conf << CNF
ClusterName=bare
SlurmctldHost=controller
SlurmUser=slurm
AuthType=auth/slurm
CredType=cred/slurm
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=controller
CNF
for key in slurm jwt_hs256; do head -c 1024 /dev/urandom > /etc/slurm/$key.key; done
chmod 600 /etc/slurm/slurmdbd.conf /etc/slurm/*.key
chown slurm: /etc/slurm/slurmdbd.conf /etc/slurm/*.key
echo "127.0.0.1 localhost
10.77.0.1 controller" > /etc/hosts
install -d -o "$user" "$data" "${socket%/*}"
install -d -o slurm /run/slurmdbd
mariadb-install-db --user="$user" --datadir="$data" --skip-test-db > /dev/null
mariadbd &
until_done mariadb-admin ping
mariadb -e "create database slurm_acct_db; create user slurm@localhost identified by 'slurm';
  grant all on slurm_acct_db.* to slurm@localhost"
setpriv --reuid=slurm --regid=slurm --init-groups slurmdbd -D &
slurmdbd=$!
until_done sacctmgr -n show cluster
sacctmgr -iQ add cluster bare
sacctmgr -iQ add account physics Organization=science Description=tests
sacctmgr -iQ add account chemistry Organization=science Description=tests
sacctmgr -iQ add user alice Account=physics,chemistry DefaultAccount=physics
sacctmgr -iQ add user bob Account=chemistry,physics DefaultAccount=chemistry
kill "$slurmdbd"
wait "$slurmdbd" || true # it ends with 1 when it is told to end
mariadb-admin shutdown
wait
rm /etc/slurm/*.key /etc/slurm/slurm.conf
INNER_SCRIPT
