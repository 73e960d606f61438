#!/usr/bin/env bash
# Installs the missing Debian packages of the given kinds (packages.txt): install-packages.sh tune test
# As root or with password-less sudo it runs apt-get; otherwise it prints the line to run and stops with 1.
# .ci/run calls it too, before there is a make to run.
set -euo pipefail
list=$(dirname "${BASH_SOURCE[0]}")/packages.txt

if ! command -v dpkg-query >/dev/null; then
  echo "Not a Debian machine: its packages are not checked. $list names what has to be there." >&2
  exit 0
fi

missing=()
while read -r kind package _; do
  case " $* " in *" $kind "*) ;; *) continue ;; esac
  dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done < <(grep -v '^#' "$list")
[ ${#missing[@]} -gt 0 ] || exit 0

line="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
as_root=(env DEBIAN_FRONTEND=noninteractive sh -c "$line")
if [ "$(id -u)" = 0 ]; then
  "${as_root[@]}" </dev/null >&2
elif sudo -n true 2>/dev/null; then
  sudo -n "${as_root[@]}" </dev/null >&2
else
  echo "Packages are missing. As root, run this line, then the same make command again:" >&2
  echo "$line"
  exit 1
fi
