#compdef simverbs
# Completion of simverbs for zsh: asks `simverbs complete` what may stand at the cursor.
_simverbs() {
    local line kind program=${words[1]/#\~/$HOME}
    local -a before answer whole open
    before=("${(@Q)words[2,CURRENT-1]}")
    answer=("${(@f)$("$program" complete -- "${before[@]}" "${(Q)PREFIX}" 2>/dev/null)}")
    for line in "${answer[@]}"; do
        case $line in
        :files | :folders | :commands) kind=$line ;;
        '') ;;
        *)
            local word=${line%%$'\t'*} meaning=
            [[ $line == *$'\t'* ]] && meaning=:${line#*$'\t'}
            if [[ $word == *[=:/] ]]; then
                open+=("${word//:/\\:}$meaning")
            else
                whole+=("${word//:/\\:}$meaning")
            fi
            ;;
        esac
    done
    (( $#whole )) && _describe -V simverbs whole
    (( $#open )) && _describe -V simverbs open -S ''
    case $kind in
    :files) compset -P '--*='; _files ;;
    :folders) compset -P '--*='; _files -/ ;;
    :commands) _command_names -e ;;
    esac
}
if [[ ${funcstack[1]} == _simverbs ]]; then
    _simverbs "$@"
else
    compdef _simverbs simverbs
fi
