#!/bin/bash
# Checks what the two shared libraries export and import, read with readelf:
#
#   linkage.sh exports  LIBIBVERBS EXPECTED...   has each expected symbol@version with its type
#   linkage.sh names    LIBSIMVERBS EXPECTED     has the public symbols under their own names
#   linkage.sh targets  LIBIBVERBS LIBSIMVERBS   LIBSIMVERBS has all imports of the trampolines
#   linkage.sh inward   LIBRARY                  calls no exported verbs name inside
#   linkage.sh identity LIBIBVERBS LIBSIMVERBS   have their SONAMEs; only LIBIBVERBS needs the other
set -euo pipefail
export LC_ALL=C

fail() {
    echo "linkage: $*" >&2
    exit 1
}

# Prints "name@@version TYPE" of the symbols that $1 defines.
defined() {
    readelf --dyn-syms -W "$1" |
        awk '$7 != "UND" && $7 != "ABS" && $8 ~ /@/ { print $8, $4 }' |
        sort
}

undefined() {
    readelf --dyn-syms -W "$1" |
        awk '$7 == "UND" && $8 != "" { sub(/@.*/, "", $8); print $8 }' |
        sort -u
}

expected() {
    grep -hv '^#' "$@" | sort
}

# Fails if $2 lacks a line of $1. Both files are sorted.
require_subset() {
    local missing
    missing=$(comm -23 "$1" "$2")
    [ -z "$missing" ] || fail "missing: $missing"
}

# Functions of libc that the library interposes.
interposed='pthread_create
pthread_join
pthread_mutex_lock
pthread_mutex_trylock
pthread_mutex_unlock
pthread_cond_wait
pthread_cond_timedwait
pthread_cond_clockwait
clock_gettime
gettimeofday
nanosleep
clock_nanosleep
usleep
sleep'

is_verbs_name() {
    grep -E '^(_?ibv_|mult_to_ibv_rate|mbps_to_ibv_rate|_?_?verbs_|execute_ioctl|__ioctl_)' || true
}

mode=$1
shift
case $mode in
exports)
    library=$1
    shift
    require_subset <(expected "$@") <(defined "$library")
    unversioned=$(readelf --dyn-syms -W "$library" |
        awk '$7 ~ /^[0-9]+$/ && $8 !~ /@/ && $4 != "SECTION" { print $8 }')
    [ "$(sort <<<"$unversioned" | xargs)" = "$(sort <<<"$interposed" | xargs)" ] ||
        fail "without a version: $unversioned"
    ;;
names)
    require_subset <(expected "$2" | grep '@@IBVERBS_1' | sort) <(defined "$1")
    ;;
targets)
    imports=$(undefined "$1" | grep '^simverbs_abi_')
    [ "$(wc -l <<<"$imports")" -ge 200 ] || fail "hardly any trampoline"
    require_subset <(echo "$imports") <(defined "$2" | sed 's/@.*//' | sort -u)
    runtime='__cxa_finalize|__gmon_start__|_ITM_|__asan|__ubsan|__tsan'
    foreign=$(undefined "$1" | grep -vE "^(simverbs_abi_|$runtime)" || true)
    [ -z "$foreign" ] || fail "$1 imports $foreign"
    ;;
inward)
    imports=$(undefined "$1" | is_verbs_name)
    [ -z "$imports" ] || fail "$1 imports $imports"
    calls=$(readelf -rW "$1" |
        awk '$3 ~ /JUMP_SLO|GLOB_DAT|_64|ABS64/ { sub(/@.*/, "", $5); print $5 }' |
        is_verbs_name)
    [ -z "$calls" ] || fail "$1 calls through $calls: it would come back through a trampoline"
    ;;
identity)
    readelf -d "$1" | grep -q 'SONAME.*\[libibverbs\.so\.1\]' || fail "SONAME of $1"
    readelf -d "$2" | grep -q 'SONAME.*\[libsimverbs\.so\.0\]' || fail "SONAME of $2"
    readelf -d "$1" | grep -q 'NEEDED.*\[libsimverbs\.so\.0\]' || fail "$1 does not need $2"
    if readelf -d "$2" | grep -q 'NEEDED.*libibverbs'; then
        fail "$2 needs libibverbs"
    fi
    ;;
*)
    fail "unknown mode $mode"
    ;;
esac
