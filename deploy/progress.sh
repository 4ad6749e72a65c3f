# For scripts that let people wait: sourced.

# thinned EVERY: passes on the first, every EVERYth and the last line of standard
# input: how far a build of hundreds of steps is, in a few lines.
thinned() {
  awk -v every="$1" '
    { last = $0; shown = 0 }
    /^FAILED|: error:|^ninja: error|^E: / { failed = 1 }
    failed || NR == 1 || NR % every == 0 { print; fflush(); shown = 1 }
    END { if (!shown && NR > 0) print last }'
}
