# shows: what a drive claims (FNA, OACS, SANICAP), in combination, and the erase that Bulkhead plans from each
# limit: 180
machine() { drive LAB-NVME-0 64; }

# The rules once more, in the words of the specification; the default order of methods.
expected() {  # FNA OACS SANICAP
    if [ $(($3 & 1)) != 0 ]; then echo sanitize-crypto
    elif [ $(($2 & 2)) != 0 ] && [ $(($1 & 4)) != 0 ]; then echo format-crypto
    elif [ $(($3 & 2)) != 0 ]; then echo sanitize-block
    elif [ $(($2 & 2)) != 0 ]; then echo format-erase
    else echo -; fi
}
guest() {
    drives_up 1
    ev nvme_s "$(cut -d ' ' -f 1 /proc/uptime)"
    local c fna oacs sanicap wanted planned tried=0 seen=
    c=$(controller LAB-NVME-0)
    check fna_before "$(identify "$c" fna)" 0
    outside_do identify LAB-NVME-0 fna=4 sanicap=3
    check fna_after "$(identify "$c" fna)" 0x4
    check sanicap_after "$(identify "$c" sanicap)" 0x3
    for sanicap in 0 1 2 3 4 7; do
        for oacs in 0x128 0x12a; do
            for fna in 0 1 2 3 4 5 6 7 8 15; do
                outside_do identify LAB-NVME-0 fna=$fna oacs=$oacs sanicap=$sanicap
                wanted=$(expected $fna $oacs $sanicap)
                planned=$(bulkhead drives | awk '$1 == "LAB-NVME-0" { print $NF; exit }')
                [ "$planned" = "$wanted" ] || { bulkhead drives; fail "FNA $fna, OACS $oacs, SANICAP $sanicap: planned $planned, expected $wanted"; }
                tried=$((tried + 1))
                case " $seen " in *" $planned "*) ;; *) seen="$seen $planned" ;; esac
            done
        done
    done
    ev combinations "$tried"
    check plans "$(echo $seen | tr " " "\n" | sort | tr "\n" " ")" "- format-crypto format-erase sanitize-block sanitize-crypto "
}
