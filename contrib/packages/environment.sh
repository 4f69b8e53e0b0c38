#!/bin/sh
# Lays out below /stage what the .deb and the .rpm bring, with the Python of a root.
#
#   environment.sh        reads /wheelhouse, /source, /man and /dist/*.cdx.json
set -eu
python=/opt/foretime/bin/python
# By its full name, as RHEL has another python3.
"python$(python3 -c "import sys; print('%d.%d' % sys.version_info[:2])")" -m venv --without-pip /opt/foretime
$python "$(echo /wheelhouse/pip-*.whl)/pip" install --quiet --no-index --find-links /wheelhouse \
  --no-compile --root-user-action ignore foretime
# One command, which what people load into PYTHONPATH does not reach.
find /opt/foretime/bin -mindepth 1 ! -name 'python*' ! -name foretime -delete
sed -i "1s|.*|#!$python -I|" /opt/foretime/bin/foretime
# Root owns the files: nobody's Python could write these later.
$python -m compileall -q --invalidation-mode unchecked-hash /opt/foretime/lib
contrib=/opt/foretime/share/foretime/contrib

install -d /stage/opt /stage/usr/bin
cp -a /opt/foretime /stage/opt/
ln -s /opt/foretime/bin/foretime /stage/usr/bin/foretime
put() {
  install -D -m 644 "$1" "/stage/usr/$2"
}
for unit in foretime.service foretime-watchdog.service foretime-watchdog.timer; do
  put $contrib/systemd/$unit lib/systemd/system/$unit
done
put $contrib/systemd/foretime.sysusers lib/sysusers.d/foretime.conf
put $contrib/systemd/foretime.tmpfiles lib/tmpfiles.d/foretime.conf
put $contrib/foretime.toml share/doc/foretime/examples/foretime.toml
put /dist/*.cdx.json share/doc/foretime/foretime.cdx.json
put /source/LICENSE share/doc/foretime/copyright
put /source/CHANGELOG.md share/doc/foretime/changelog
gzip -n -9 /stage/usr/share/doc/foretime/changelog
for page in /man/*; do
  put "$page" "share/man/man1/${page##*/}"
done
gzip -n -9 /stage/usr/share/man/man1/*
completion() {
  env "_FORETIME_COMPLETE=source_$1" $python -I /opt/foretime/bin/foretime >/tmp/completion
  put /tmp/completion "share/$2"
}
completion bash bash-completion/completions/foretime
completion fish fish/vendor_completions.d/foretime.fish
completion zsh zsh/vendor-completions/_foretime
