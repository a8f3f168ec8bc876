#!/bin/sh
# The CLI of the shell tool: one shell that takes commands one after the other, so
# cd, variables and functions persist. cli.sh ends in `exec sh|bash shell-driver.sh`.
#
# fd 3 (stdin when 3 is closed): one base64 line per command (any bytes but NUL, any length, many lines).
# stdout: OSC 133;C, the command's output, OSC 133;D;<status>; the same for each.
# A command reads /dev/null. INT to the process group ends it, not the shell, and
# its status is 130. `exit` ends the session, as does the end of fd 3.
#
# On a pty nothing is echoed and LF stays LF; commands do not travel through the
# terminal, whose line buffer ends at 4096 bytes.

{ true <&3; } 2>/dev/null || exec 3<&0 </dev/null
[ -t 1 ] && stty -echo -onlcr <&1 2>/dev/null

# `command` takes eval's right to end the shell at a syntax error. The trap's
# return leaves this function, out of loops and builtins as well.
run_command() { command eval "$1" </dev/null 3<&-; }

while IFS= read -r line <&3; do
    # the x keeps trailing newlines
    text=$(printf '%s' "$line" | base64 -d 3<&- && echo x) || text='echo "not base64" >&2; (exit 125)x'
    trap 'return 130' INT
    printf '\033]133;C\007'
    run_command "${text%x}"
    status=$?
    trap : INT
    printf '\033]133;D;%s\007' "$status"
done
