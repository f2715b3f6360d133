#!/usr/bin/env bash
# A real SLURM on one machine, for tests: controller, node daemon and authentication, started from a
# directory of their own and ended by the process ids noted there. Needs root; no systemd, no cgroups,
# no database, and nothing under /etc or /run is touched.
#
#   cluster/slurm_on_localhost.sh install       packages, where they are missing (Debian, Ubuntu)
#   cluster/slurm_on_localhost.sh start DIR     start; prints the line to evaluate in a shell
#   cluster/slurm_on_localhost.sh stop DIR      end what `start` started
#
# Two partitions: jobs in `high` push those in `low` back into the queue.
# Settings from the environment: CONTROLLER_PORT, NODE_PORT, GPUS (character devices that stand in for
# GPUs), CPUS (cores that SLURM hands out).
set -euo pipefail

CONTROLLER_PORT=${CONTROLLER_PORT:-16817}
NODE_PORT=${NODE_PORT:-16818}
GPUS=${GPUS:-0}
CPUS=${CPUS:-$(nproc)}
DAEMONS="slurmd slurmctld munged"

fail() { echo "slurm_on_localhost: $*" >&2; exit 1; }

install_packages() {
    if command -v slurmctld slurmd munged sbatch >/dev/null; then return; fi
    command -v apt-get >/dev/null || fail "SLURM is missing and there is no apt-get to install it"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends slurm-wlm munge >/dev/null
}

write_settings() {
    local host memory version k
    host=$(hostname -s)
    memory=$(awk '/^MemTotal/ {print int($2 / 1024 * 0.9)}' /proc/meminfo)
    : > "$1/gres.conf"
    for ((k = 0; k < GPUS; k++)); do
        # SLURM wants a character device before it hands out CUDA_VISIBLE_DEVICES.
        [ -c "$1/gpu$k" ] || mknod "$1/gpu$k" c 240 "$k"
        echo "NodeName=$host Name=gpu File=$1/gpu$k" >> "$1/gres.conf"
    done
    version=$(slurmctld -V | sed 's/[^0-9]*\([0-9]*\).*/\1/')
    # Newer versions look for cgroups even where no plugin asks for them.
    if [ "$version" -ge 23 ]; then echo "CgroupPlugin=disabled" > "$1/cgroup.conf"; fi
    cat > "$1/slurm.conf" <<SETTINGS
ClusterName=localhost
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$1/munge/socket
SlurmctldPort=$CONTROLLER_PORT
SlurmdPort=$NODE_PORT
SlurmctldPidFile=$1/slurmctld.pid
SlurmdPidFile=$1/slurmd.pid
SlurmctldLogFile=$1/slurmctld.log
SlurmdLogFile=$1/slurmd.log
StateSaveLocation=$1/state
SlurmdSpoolDir=$1/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=2,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=10
MinJobAge=3600
GresTypes=gpu
NodeName=$host NodeAddr=127.0.0.1 CPUs=$CPUS RealMemory=$memory$( ((GPUS)) && echo " Gres=gpu:$GPUS") State=UNKNOWN
PartitionName=low Nodes=$host Default=YES State=UP MaxTime=INFINITE PriorityTier=1 PreemptMode=REQUEUE GraceTime=20
PartitionName=high Nodes=$host Default=NO State=UP MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF
SETTINGS
}

start() {
    [ "$(id -u)" = 0 ] || fail "starting SLURM needs root"
    mkdir -p "$1/state" "$1/spool" "$1/munge"
    chmod 755 "$1" "$1/munge"
    write_settings "$1"
    export SLURM_CONF=$1/slurm.conf
    # Under the root account, with a key of its own: the machine's own munge is left alone.
    [ -s "$1/munge/key" ] || (umask 077; head -c 1024 /dev/urandom > "$1/munge/key")
    munged --force --key-file="$1/munge/key" --socket="$1/munge/socket" \
        --pid-file="$1/munged.pid" --log-file="$1/munge/log" --seed-file="$1/munge/seed" 2>> "$1/munge/log" \
        || fail "munged does not start: $(tail -n 1 "$1/munge/log")"
    slurmctld -f "$SLURM_CONF" || fail "slurmctld does not start: $(tail -n 1 "$1/slurmctld.log")"
    slurmd -f "$SLURM_CONF" || fail "slurmd does not start: $(tail -n 1 "$1/slurmd.log")"
    for _ in $(seq 120); do
        if sinfo --noheader --partition=low --format=%t 2>/dev/null | grep -qx idle; then
            echo "export SLURM_CONF=$SLURM_CONF"
            return
        fi
        sleep 0.25
    done
    fail "the node does not become idle: $(tail -n 1 "$1/slurmctld.log")"
}

stop() {
    local name process
    for name in $DAEMONS; do
        [ -s "$1/$name.pid" ] || continue
        process=$(cat "$1/$name.pid")
        # The number may have passed on to somebody else since.
        [ "$(cat "/proc/$process/comm" 2>/dev/null)" = "$name" ] || continue
        kill "$process"
        for _ in $(seq 40); do
            kill -0 "$process" 2>/dev/null || break
            sleep 0.1
        done
        if kill -0 "$process" 2>/dev/null; then kill -KILL "$process"; fi
        rm -f "$1/$name.pid"
    done
}

command=${1:-}
[ $# -lt 2 ] || directory=$(realpath -m "$2")
case "$command" in
    install) install_packages ;;
    start) start "${directory:?name the directory to work in}" ;;
    stop) stop "${directory:?name the directory that was given to start}" ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
