# Starts systemd and runs `sh ./script $1` in this folder as one of its units; says what that says.
#
# systemd is process 1 of a PID namespace, and has all cgroups. It finds no units but those in /run,
# so that none of the host's services starts. What systemd itself tells comes last.
mkdir -p /run
mount -t tmpfs run /run
units=/run/systemd/system
mkdir -p $units /run/no-generators
mkfifo /run/said
for target in sysinit basic shutdown multi-user; do echo '[Unit]' >$units/$target.target; done
cat >$units/script.service <<END
[Service]
WorkingDirectory=$PWD
ExecStart=/bin/sh ./script $1
StandardOutput=file:/run/said
StandardError=inherit
PassEnvironment=PATH
END
echo on >/proc/sys/kernel/printk_devkmsg
{
    env -i PATH=$PATH container=attune SYSTEMD_LOG_TARGET=kmsg \
        SYSTEMD_UNIT_PATH=/run/systemd/system.control:/run/systemd/transient:$units \
        SYSTEMD_GENERATOR_PATH=/run/no-generators \
        unshare --pid --fork --mount --mount-proc --propagation private \
        /lib/systemd/systemd --unit=script.service --default-standard-output=null </dev/null
    echo "systemd has ended" >/run/said
} &
# The script's unit ends, and systemd kills what it has left.
cat /run/said
echo "<log>"
dmesg | grep -F 'systemd[1]'
echo "<end>"
