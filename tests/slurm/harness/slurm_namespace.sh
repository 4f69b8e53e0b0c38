# The first process of a test cluster's own mount and process namespaces: slurm_namespace.py.
#
# Lives until its standard input ends, which the kernel sees to however the test run ends; then
# ends every process of the cluster and removes its folder. Its mounts vanish with it.
folder=$1 root=$2
set -e
mount --make-rprivate /
mount --bind "$folder" "$folder"
mount --make-shared "$folder"  # what is mounted in it later is seen in the release's root, too
# An /etc of its own, which useradd may change: it puts a new passwd in the place of the old one. The
# release's root names this one's users, by links that lead to whichever file is there.
etc=$folder/host-etc
mkdir "$etc"
mount -t tmpfs -o mode=0755 etc "$etc"
cp -a /etc/. "$etc"
cp "$folder/passwd" "$folder/group" "$etc"
mkdir -p "$etc/slurm"
mount --bind "$folder/etc" "$etc/slurm"
mount --rbind "$etc" /etc
if [ "$root" != / ]; then
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs -o mode=0755 run "$root/run"
  mount -t tmpfs -o mode=1777 tmp "$root/tmp"
  # Else slurmctld asks a name server who a client at 127.0.0.1 is, and a request may wait for 5 s.
  touch "$root/etc/hosts"
  mount --bind /etc/hosts "$root/etc/hosts"
  mkdir -p "$root$folder"
  mount --rbind "$folder" "$root$folder"
  mount -t tmpfs -o mode=0755 etc /mnt
  cp -a "$root/etc/." /mnt
  for file in passwd group; do ln -sf "$etc/$file" "/mnt/$file"; done
  mkdir -p /mnt/slurm
  mount --bind "$folder/etc" /mnt/slurm
  mount --move /mnt "$root/etc"
fi
set +e
echo ready
read -r _
kill -KILL -1
while read -r _ mounted _; do
  case $mounted in "$folder" | "$folder"/*) umount -l "$mounted" ;; esac
done </proc/self/mounts
rm -rf "$folder"
