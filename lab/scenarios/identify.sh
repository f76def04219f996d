# shows: what a drive claims (FNA, OACS, SANICAP), in combination: the erase that Bulkhead plans from each, carried out or refused
# limit: 300
machine() { drive LAB-NVME-0 16; }

# The rules once more, in the words of the specification; the default order of methods. Sets planned, passed_over, sent.
expected() {  # FNA OACS SANICAP
    local nsid=1h
    [ $(($1 & 2)) = 0 ] || [ $(($1 & 8)) != 0 ] || nsid=FFFFFFFFh  # an erase of one is of all; where that may be said of all
    sent=
    if [ $(($3 & 1)) != 0 ]; then planned=sanitize-crypto passed_over=
    elif [ $(($2 & 2)) != 0 ] && [ $(($1 & 4)) != 0 ]; then
        planned=format-crypto passed_over=" sanitize-crypto" sent="admin 80h nsid $nsid cdw10 00000400h"
    elif [ $(($3 & 2)) != 0 ]; then planned=sanitize-block passed_over=" sanitize-crypto format-crypto"
    elif [ $(($2 & 2)) != 0 ]; then
        planned=format-erase passed_over=" sanitize-crypto format-crypto sanitize-block" sent="admin 80h nsid $nsid cdw10 00000200h"
    else planned= passed_over=" sanitize-crypto format-crypto sanitize-block format-erase sanitize-overwrite host-zeroes"; fi
    # Who claims any Sanitize has a log of it, which must be read before anything is sent. QEMU has none.
    [ "$3" = 0 ] || sent=
}
# What `erase-drive` said, by its lines.
understand() {
    local word second rest
    method='' not_by='' command='' end=''
    while read -r word second rest; do
        case $word in
            method) method=${second#nvme-} ;;
            not) not_by="$not_by ${rest%%:*}" ;;
            sent) command="$second $rest" ;;
            refused | failed) end="$word: $second $rest" ;;
        esac
    done </tmp/said
}
guest() {
    drives_up 1
    ev nvme_s "$(cut -d ' ' -f 1 /proc/uptime)"
    local c b fna oacs sanicap rc erased=0 unclaimed=0 unlogged=0 seen=
    c=$(controller LAB-NVME-0)
    b=$(block LAB-NVME-0)
    check fna_before "$(identify "$c" fna)" 0
    outside_do identify LAB-NVME-0 fna=4 sanicap=3
    check fna_after "$(identify "$c" fna)" 0x4
    check sanicap_after "$(identify "$c" sanicap)" 0x3
    write_marker "$b" tenant-secret 7
    for sanicap in 0 1 2 3 4 7; do
        for oacs in 0x128 0x12a; do
            for fna in 0 1 2 3 4 5 6 7 8 15; do
                outside_do identify LAB-NVME-0 fna=$fna oacs=$oacs sanicap=$sanicap
                expected $fna $oacs $sanicap
                rc=0
                bulkhead erase-drive --serial LAB-NVME-0 --yes --drive-samples 20 >/tmp/said 2>&1 || rc=$?
                understand
                [ "$method/$not_by/$command" = "$planned/$passed_over/$sent" ] || { cat /tmp/said; fail "FNA $fna, OACS $oacs, SANICAP $sanicap: $method, not$not_by, sent $command; expected $planned, not$passed_over, sent $sent"; }
                case " $seen " in *" ${planned:--} "*) ;; *) seen="$seen ${planned:--}" ;; esac
                if [ -n "$sent" ]; then
                    [ "$rc" = 0 ] && gone "$b" tenant-secret 7 || { cat /tmp/said; fail "FNA $fna, OACS $oacs, SANICAP $sanicap: not erased, exit $rc"; }
                    erased=$((erased + 1))
                    write_marker "$b" tenant-secret 7
                    continue
                fi
                # Nothing was sent, nothing weaker in its place either; the reason has a next step, and the marker is where it was.
                case $planned/$end in
                    /"refused: it offers no method that policy allows; allow another one (--erase)"*) unclaimed=$((unclaimed + 1)) ;;
                    ?*/"refused: the drive has no Sanitize log: "*"; "*"take the drive out"*) unlogged=$((unlogged + 1)) ;;
                    *) cat /tmp/said; fail "FNA $fna, OACS $oacs, SANICAP $sanicap: $end" ;;
                esac
                [ "$rc" = 3 ] && holds "$b" tenant-secret 7 || { cat /tmp/said; fail "FNA $fna, OACS $oacs, SANICAP $sanicap: refused, exit $rc, and the marker is gone"; }
            done
        done
    done
    check combinations "$((erased + unclaimed + unlogged))" 120
    check erased "$erased" 10
    check refused_unclaimed "$unclaimed" 20
    check refused_unlogged "$unlogged" 90
    check plans "$(echo $seen | tr " " "\n" | sort | tr "\n" " ")" "- format-crypto format-erase sanitize-block sanitize-crypto "
    ev identify_s "$(cut -d ' ' -f 1 /proc/uptime)"
}
