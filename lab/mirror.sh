# The Debian mirror that this machine's own apt sources name, in either of their two formats.
debian_mirror() {
    local found
    found=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | grep -v security | head -n 1 | tr -d ' ')
    [ -n "$found" ] && echo "${found%/}"
}
