# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Makes a patch of a port for the list of its project. Sourced after lab/lib.sh; port is a
# directory of ports.

# The first sign-off is the author's, as in the series.
# shellcheck disable=SC2154 # set by those who source this
signer=$(sed -n '/^Signed-off-by: /{s///p;q}' "$port/tp4.msg")

# commit OPTION...: commits all files of the working directory, which git init has prepared
commit() {
	local email=${signer#*<}

	git add -Af
	git -c user.name="${signer% <*}" -c user.email="${email%>}" commit -q "$@"
}

# write_patch DIR: writes the commits since the first, and what has changed since the last, as
# mails to DIR
write_patch() {
	commit -F "$port/tp4.msg"
	git format-patch -q -o "$1" "$(git rev-list --max-parents=0 HEAD)"
	rm -rf .git
}

# port_patches VERSION: prints the patches of the port for a version of its project, in the
# directory of the port. FILE.d/tp4@V.patch replaces FILE.d/tp4.patch from version V on.
port_patches() {
	local dir patch best

	for dir in *.d */*.d; do
		best=''
		for patch in "$dir"/tp4.patch "$dir"/tp4@*.patch; do
			[ -f "$patch" ] || continue
			[[ $patch != *@* ]] ||
				printf '%s\n' "$(basename "${patch#*@}" .patch)" "$1" |
				sort -CV || continue
			best=$patch
		done
		[ ! "$best" ] || echo "$best"
	done
}
