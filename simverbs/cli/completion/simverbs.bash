# Completion of simverbs for bash: asks `simverbs complete` what may stand at the cursor.
_simverbs() {
    local line=${COMP_LINE:0:COMP_POINT} breaks='' prefix='' word kind='' words=()
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    local begun=${words[-1]}
    # What stands before one of these in the word is no part of what bash replaces.
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=:
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+="="
    [[ -n $breaks ]] && prefix=${begun%"${begun##*["$breaks"]}"}
    COMPREPLY=()
    while IFS=$'\t' read -r word _; do
        case $word in
        :files) kind=-f ;;
        :folders) kind=-d ;;
        :commands) kind=-c ;;
        *) COMPREPLY+=("${word#"$prefix"}") ;;
        esac
    done < <("${words[0]/#\~/$HOME}" complete -- "${words[@]:1}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:/] ]]; then
        compopt -o nospace 2>/dev/null
    fi
    if [[ -n $kind ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen "$kind" -- "${begun##*=}")
    fi
}
complete -F _simverbs simverbs
