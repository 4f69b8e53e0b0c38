# The first process of a PBS server's own namespaces: tests/support/processes/own_namespaces.py.
#
# Lives until its standard input ends, which the kernel sees to however the test run ends; then
# ends every process of the server and removes its folder. What PBS has by fixed names is the
# folder's inside: /etc, /run, /var/spool (with PBS_HOME) and /var/tmp. Further arguments are folders
# that Foretime runs from: the daemon's own user must see them where they are in root's home.
folder=$1
shift
set -e
mount --make-rprivate /
mount --bind "$folder/etc" /etc
mount --bind "$folder/run" /run
mount --bind "$folder/spool" /var/spool
mount --bind "$folder/var-tmp" /var/tmp
mkdir "$folder/seen"
for path; do
  mkdir -p "$folder/seen$path"
  mount --bind "$path" "$folder/seen$path"
done
mount -t tmpfs -o mode=0755 root /root
for path; do
  case $path in /root/*) mkdir -p "$path" && mount --bind "$folder/seen$path" "$path" ;; esac
done
hostname pbs01
ip link set lo up
ip addr add 192.0.2.2/32 dev lo  # pbs_server refuses a host that is called like loopback
set +e
echo ready
read -r _
kill -KILL -1
for path; do umount -l "$folder/seen$path"; done
rm -rf --one-file-system "$folder"
