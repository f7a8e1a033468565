# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# bash completion of tp4

_tp4() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local words devices

	devices=$(ls /sys/class/net)
	case " ${COMP_WORDS[*]:0:COMP_CWORD} " in
	*' list '*) words="--json $devices" ;;
	*' stats '*)
		words="--json --count $(pgrep .)"
		[[ $prev != -c && $prev != --count ]] || words=
		;;
	*' steer '*)
		case $prev in
		steer | -k | --keep | -d | --delete | -l | --list)
			words="--keep --delete --list $devices"
			;;
		src | dst | sport | dport | vlan | mac) words= ;;
		*)
			words='src dst sport dport vlan mac'
			[[ $'\n'$devices$'\n' != *$'\n'$prev$'\n'* ]] ||
				words='tcp udp sctp ip ether'
			;;
		esac
		;;
	*' hold '*) words=$devices ;;
	*) words='list stats steer hold --help --version' ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _tp4 tp4
