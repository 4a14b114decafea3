# Completion of simverbs for fish: asks `simverbs complete` what may stand at the cursor.
function __simverbs_complete
    set -l words (commandline -opc)
    set -l begun (commandline -ct)
    set -l option (string match -r -- '^--[^=]*=' "$begun")
    set -l value (string replace -r -- '^--[^=]*=' '' "$begun")
    for line in ($words[1] complete -- $words[2..-1] "$begun" 2>/dev/null)
        switch $line
            case :files
                string replace -r -- '^' "$option" (__fish_complete_path "$value")
            case :folders
                string replace -r -- '^' "$option" (__fish_complete_directories "$value")
            case :commands
                complete -C "$value"
            case '*'
                echo $line
        end
    end
end
complete -c simverbs -f -a '(__simverbs_complete)'
