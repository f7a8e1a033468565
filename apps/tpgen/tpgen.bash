# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Completion of tpgen for bash: modes, options, interfaces, files and words

_tpgen() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev='' words=''

	[ "$COMP_CWORD" -eq 0 ] || prev=${COMP_WORDS[COMP_CWORD - 1]}
	COMPREPLY=()
	case $prev in
	-i | --interface | --to)
		words=$(cd /sys/class/net && echo *)
		;;
	-f | --file | --json | --json-stream | --plot | --payload | --write)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--proto) words='udp tcp icmp' ;;
	--launch) words='fq etf' ;;
	--stamps) words='program software hardware' ;;
	-l | --length) words='imix rfc2544' ;;
	-R | --rate) words=max ;;
	--random) words='length src dst sport dport src-mac dst-mac vlan outer-vlan' ;;
	*)
		words='tx rx ping pong replay search'
		[[ $cur != -* ]] || words=$(tpgen --help 2>/dev/null |
			grep -oE -- '--[a-z][a-z0-9-]*' | sort -u)
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _tpgen tpgen
