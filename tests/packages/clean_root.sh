#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the DEB by dpkg into an empty root that contains only the packages on which it depends. There, two ranks run
# over hostccl with the object preloaded. Then the DEB is removed, and nothing of it may be left.
#   tests/packages/clean_root.sh [folder of packages]
# shellcheck source=tests/packages/packages.bash
source "$(dirname "${BASH_SOURCE[0]}")/packages.bash"
deb="$(one_package '*.deb')"
command -v dpkg >/dev/null || skip "there is no dpkg"
[[ $(id -u) -eq 0 ]] || skip "a root of its own needs to be root"

clean="$work/root"
mkdir -p "$clean"/var/lib/dpkg/{info,updates,triggers} "$clean"/{dev/shm,tmp,proc,home} "$clean/usr"/{bin,lib,lib64,sbin}
touch "$clean/var/lib/dpkg/status"
for folder in bin lib lib64 sbin; do ln -s "usr/$folder" "$clean/$folder"; done # as in Debian

# Copies the files of a Debian package of this machine, and of all its dependencies. Also copies its status, so that
# dpkg regards it as installed.
declare -A there
bring() { # package
  local package="${1%%:*}" file dependency
  [[ -z "${there[$package]:-}" ]] || return 0
  there[$package]=1
  dpkg-query -W "$package" >/dev/null 2>&1 || fail "the package depends on $package, which this machine does not have"
  dpkg-query -L "$package" | while read -r file; do
    [[ -d "$file" || "$file" == /usr/share/* ]] || cp -a --parents "$file" "$clean" 2>/dev/null || true
  done
  dpkg-query -s "$package" | sed '/^Conffiles:/,/^[^ ]/{/^Conffiles:/d;/^ /d}' >>"$clean/var/lib/dpkg/status"
  echo >>"$clean/var/lib/dpkg/status"
  for dependency in $(dpkg-query -W -f='${Pre-Depends},${Depends}' "$package" | tr ',' '\n' | sed 's/[ (|].*//;s/^ *//'); do
    bring "$dependency"
  done
}
for dependency in $(dpkg-deb -f "$deb" Depends | tr ',' '\n' | sed 's/^ *//;s/[ (|].*//'); do bring "$dependency"; done
printf 'beside %s: %s\n' "$(basename "$deb")" "${!there[*]}"
dpkg --root="$clean" --force-not-root --force-script-chrootless -i "$deb" >"$work/log" 2>&1 || { cat "$work/log"; fail "dpkg refuses it"; }
dpkg --root="$clean" -s dynamiccl | grep -q '^Status: install ok installed$' || fail "dpkg says that it is not installed"

# If the machine allows mounting /proc in a namespace, the program finds itself there. Otherwise DYNAMICCL_HOME names
# its folder.
inside=(chroot "$clean" /usr/bin/env -i PATH=/usr/bin HOME=/home NO_COLOR=1)
if unshare --mount true 2>/dev/null && unshare --mount sh -c "mount --bind /proc '$clean/proc'" 2>/dev/null; then
  # shellcheck disable=SC2016 # the inner shell's own
  here() { unshare --mount sh -c 'mount --bind /proc "$1/proc"; shift; exec "$@"' sh "$clean" "${inside[@]}" "$@"; }
else
  printf 'no /proc can be mounted here: DYNAMICCL_HOME says where the installation is\n'
  here() { "${inside[@]}" DYNAMICCL_HOME=/usr "$@"; }
fi
[[ -x "$clean/usr/bin/env" ]] || { cp /usr/bin/env "$clean/usr/bin/env"; }
[[ "$(here /usr/bin/dynamiccl path --preload)" == /usr/lib/libdynamiccl.so ]] || fail "path --preload does not name the object"
[[ "$(here /usr/bin/dynamiccl path --tuner)" == /usr/lib/libnccl-tuner-dynamiccl.so ]] || fail "path --tuner does not name the plugin"
here /usr/bin/dynamiccl version
here /usr/bin/dynamiccl record -o /tmp/run.ctrace -n 2 -- /usr/bin/dynamiccl bench all_reduce -b 1K -e 1M -f 32 -n 3 -w 1 >"$work/log" 2>&1 ||
  { cat "$work/log"; fail "two ranks over hostccl fail there"; }
here /usr/bin/dynamiccl trace show /tmp/run.ctrace | tee "$work/shown" | head -5
grep -q AllReduce "$work/shown" || fail "no AllReduce in the trace"
here /usr/bin/dynamiccl doctor --compare-nccl 2.28.9 2.32.3 >"$work/log" || { cat "$work/log"; fail "the data that the command needs is not there"; }
here /usr/bin/dynamiccl zero estimate --parameters 7.5B --ranks 64 | grep -q '^3 .* 1.88 ' || fail "zero estimate"
for file in share/man/man1/dynamiccl.1 share/bash-completion/completions/dynamiccl share/zsh/site-functions/_dynamiccl \
  share/fish/vendor_completions.d/dynamiccl.fish share/doc/dynamiccl/LICENSE share/doc/dynamiccl/licences/fmt.txt \
  share/doc/dynamiccl/dynamiccl.spdx.json include/dynamiccl/agreed_value.h include/dynamiccl/phase_marker.h lib/libnccl-profiler-dynamiccl.so; do
  [[ -s "$clean/usr/$file" ]] || fail "no /usr/$file"
done
# No file may contain the folder of the sources.
! grep -rlaF "$root" "$clean/usr/bin/dynamiccl" "$clean/usr/lib/hostccl" "$clean"/usr/lib/libdynamiccl*.so "$clean/usr/share/doc/dynamiccl" \
  "$clean/usr/lib/cmake" "$clean/usr/lib/pkgconfig" || fail "the files above hold the folder of the sources"

dpkg --root="$clean" --force-not-root --force-script-chrootless -P dynamiccl >"$work/log" 2>&1 || { cat "$work/log"; fail "dpkg cannot remove it"; }
left="$(find "$clean" -path "$clean/var" -prune -o -path "$clean/tmp" -prune -o -name '*dynamiccl*' -print)"
[[ -z "$left" ]] || fail "left behind: $left"
printf 'installed, used and removed\n'
