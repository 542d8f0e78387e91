#!/bin/sh
# Writes the .tbd files from the symbol lists in symbols/ (one file a library:
# first line the install name, then one symbol a line; "class NAME" for an Objective-C class,
# "library NAME" for one whose symbols are found through this one).
set -eu
cd "$(dirname "$0")"
one() { # list, output
	name=$(sed -n 1p "$1")
	syms=$(sed 1d "$1" | grep -v '^class \|^library \|^#\|^$' | sort -u | paste -sd, | sed 's/,/, /g')
	classes=$(sed 1d "$1" | sed -n 's/^class //p' | sort -u | paste -sd, | sed 's/,/, /g')
	libraries=$(sed 1d "$1" | sed -n "s/^library \(.*\)/'\1'/p" | sort -u | paste -sd, | sed 's/,/, /g')
	mkdir -p "$(dirname "$2")"
	{
		echo '--- !tapi-tbd'
		echo 'tbd-version:     4'
		echo 'targets:         [ arm64-macos ]'
		echo "install-name:    '$name'"
		echo 'current-version: 1'
		[ -z "$libraries" ] || printf "reexported-libraries:\n  - targets:         [ arm64-macos ]\n    libraries:       [ %s ]\n" "$libraries"
		echo 'exports:'
		echo '  - targets:         [ arm64-macos ]'
		echo "    symbols:         [ $syms ]"
		[ -z "$classes" ] || echo "    objc-classes:    [ $classes ]"
		echo '...'
	} >"$2"
}
for f in symbols/lib*; do one "$f" "usr/lib/$(basename "$f").tbd"; done
for f in symbols/*; do
	b=$(basename "$f")
	case $b in lib*) continue ;; esac
	one "$f" "System/Library/Frameworks/$b.framework/$b.tbd"
	# Where a library that passes its symbols on is looked for.
	installed=$(sed -n 1p "$f")
	mkdir -p ".${installed%/*}"
	ln -sf "../../$b.tbd" ".$installed.tbd"
done
ln -sf libSystem.tbd usr/lib/libSystem.B.tbd
for l in libm libpthread libc; do ln -sf libSystem.tbd "usr/lib/$l.tbd"; done
