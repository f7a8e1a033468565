# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Fetches Debian packages and sources without changing the machine's apt. Sourced after
# lab/lib.sh.

# apt_lists DIR deb|deb-src [SED]: fetches package lists to DIR, with the machine's
# sources edited by the sed script, and with the configuration in DIR/conf, if there is one.
# The machine's own lists are not changed.
apt_lists() {
	local apt=$1 type=$2 edit=${3:-} f n=0

	mkdir -p "$apt"/{sources.d,lists/partial,cache/archives/partial,get}
	cat >>"$apt/conf" <<-CONF
	Dir::Etc::sourcelist "/dev/null";
	Dir::Etc::sourceparts "$apt/sources.d";
	Dir::State::lists "$apt/lists";
	Dir::Cache "$apt/cache";
	APT::Sandbox::User "$(id -un)";
	CONF
	for f in /etc/apt/sources.list.d/*.sources; do
		[ -f "$f" ] || continue
		n=$((n + 1))
		sed -e "s/^Types:.*/Types: $type/" -e "$edit" "$f" \
			>"$apt/sources.d/$n.sources"
	done
	for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ -f "$f" ] || continue
		n=$((n + 1))
		sed -n -e "$edit" -e "s/^deb\([[:space:]]\)/$type\1/p" "$f" \
			>"$apt/sources.d/$n.list"
	done
	LC_ALL=C own_apt "$apt" apt-get -qq -o APT::Update::Error-Mode=any \
		update 2>"$apt/log" || {
		cat "$apt/log" >&2
		note "some package lists could not be fetched; trying without them"
	}
}

# own_apt DIR COMMAND...: apt-get or apt-cache with the lists in DIR
own_apt() {
	"$2" -c "$1/conf" "${@:3}"
}

# unpack APT DIR PACKAGE...: unpacks binary packages to DIR, with the lists in APT
unpack() {
	local deb

	(cd "$1/get" && own_apt "$1" apt-get -qq download "${@:3}") >&2 || return
	for deb in "$1"/get/*.deb; do
		dpkg-deb -x "$deb" "$2" || return
		rm "$deb"
	done
}

# cannot_fetch APT WHAT: ends the script with the reason
cannot_fetch() {
	! says_no_network "$1/log" || skip "no network: cannot fetch $2"
	die "cannot fetch $2"
}

# fetch_package PACKAGE DIR [SUITE]: unpacks a binary package to DIR/root; the rest of DIR
# is for apt
fetch_package() {
	local package=$1 apt=$2 rename=''

	note "fetching the package $package"
	rm -rf "$apt"
	[ ! "${3:-}" ] || rename="s/\\b$(codename)\\b/$3/g"
	apt_lists "$apt" deb "$rename"
	unpack "$apt" "$apt/root" "$package" || cannot_fetch "$apt" "the package $package"
}

# fetch_source PACKAGE DIR [SUITE]: unpacks Debian's source package to DIR, that of the
# machine's own suite or of another one (trixie)
fetch_source() {
	local package=$1 dir=$2 apt=$2.apt rename='' version

	note "fetching the source package of $package"
	rm -rf "$apt"
	on_exit rm -rf "$apt"
	[ ! "${3:-}" ] || rename="s/\\b$(codename)\\b/$3/g"
	apt_lists "$apt" deb-src "$rename"
	# An archive may list versions that it no longer has.
	for version in $(own_apt "$apt" apt-cache madison "$package" |
			 awk -F'|' '/Sources/ { print $2 }'); do
		note "trying version $version"
		if (cd "$apt/get" && own_apt "$apt" apt-get -qq source \
			--download-only "$package=$version") >&2; then
			break
		fi
		rm -f "$apt/get"/*
	done
	set -- "$apt/get"/*.dsc
	[ -f "$1" ] || cannot_fetch "$apt" "a version of the source package $package"
	note "unpacking"
	dpkg-source --no-check -x "$1" "$apt/source" >/dev/null
	rm -rf "$dir"
	mv "$apt/source" "$dir"
	rm -rf "$apt"
}

# unpack_program PACKAGE DIR SUITE...: unpacks a binary package, and those that it depends on
# and this machine lacks, to DIR in the cache, from the first of these suites that has it.
# Packages of the same family are unpacked if they are installed, too: all their files are
# in one place on each machine.
unpack_program() {
	local package=$1 dir=$2 tmp=$CACHE/tmp.$1 suite names='' tool code

	shift 2
	mkdir -p "$CACHE"
	exec 9>"$dir.lock"
	flock 9
	[ ! -d "$dir" ] || return 0
	for tool in apt-get dpkg-deb; do
		command -v $tool >/dev/null || skip "no $tool, which fetches $package"
	done
	rm -rf "$tmp"
	on_exit rm -rf "$tmp"
	code=$(codename)
	# Adds the backports to the lines for Debian's suite, in both formats
	apt_lists "$tmp" deb "s/^Suites:.* $code\( .*\)\?\$/& $code-backports/
s/^\(deb .*\) $code \(.*\)/&\n\1 $code-backports \2/"
	awk -v RS= -v ORS='\n\n' -v "family=${package%%-*}" \
		'$2 !~ "(^|-)" family "(-|$)"' /var/lib/dpkg/status \
		>"$tmp/status"
	echo "Dir::State::status \"$tmp/status\";" >>"$tmp/conf"
	for suite; do
		names=$(own_apt "$tmp" apt-get -s -t "$suite" --no-install-recommends \
			install "$package" 2>>"$tmp/log" | awk '/^Inst/ { print $2 }') || :
		[ ! "$names" ] || break
	done
	if [ ! "$names" ]; then
		! says_no_network "$tmp/log" || skip "no network: cannot fetch $package"
		skip "there is no $package in $*"
	fi
	note "unpacking $package from $suite"
	# shellcheck disable=SC2086 # one word a package
	unpack "$tmp" "$tmp/root" -t "$suite" $names
	mv "$tmp/root" "$dir"
}
