#!/usr/bin/env bash
# Takes docs/pictures/desktop.png and docs/pictures/graph.svg: a desktop in a virtual machine that
# `attune run desktop --all` schedules, with `attune top` on it, and the wake-ups that its monitor
# has counted. Prints both as an archive, since nothing that it writes outlives the machine:
#
#     attune vm --cpus 2 --memory 3072 -- docs/pictures/desktop.sh | tar -x -C docs/pictures
#
# Needs `tools/setup.sh test` and `players`, and `make build` or `cargo build`: PROGRAMS names the
# folder of `attune`. Takes two minutes.
set -euo pipefail
PATH=$PATH:$(realpath "${PROGRAMS:-$(dirname "$0")/../../target/release}")
place=$(mktemp -d)
export DISPLAY=:9

say() { echo "desktop.sh: $*" >&2; }

# Ends with the machine.
begin() { "$@" >>"$place/$(basename "$1").log" 2>&1 & }

# until_it SECONDS COMMAND..
until_it() {
    local patience=$((SECONDS + $1))
    shift
    until "$@" >"$place/tried" 2>&1; do
        [ $SECONDS -lt $patience ] || { say "in vain: $*"; cat "$place"/*.log >&2; exit 1; }
        sleep 0.5
    done
}

say "a film"
ffmpeg -loglevel error -f lavfi -i testsrc2=s=320x180:r=25:d=600 -c:v mpeg4 "$place/film.avi"

say "the display, its monitor and the policy"
begin Xvfb $DISPLAY -screen 0 1280x800x24 -nolisten tcp -ac
until_it 30 xdotool getdisplaygeometry
begin openbox
begin attune run desktop --all
until_it 60 attune top --once
begin attune focus
until_it 60 attune focus show

say "programs, and two processes that compute"
font="-fa DejaVuSansMono -fs 8"
# shellcheck disable=SC2086 # The font is three words.
begin xterm $font -geometry 118x12+5+605 -e vim -u NONE
begin mplayer -really-quiet -noconsolecontrols -vo x11 -ao null -framedrop -geometry 855:600 \
    -vf scale=420:196 "$place/film.avi"
begin sh -c 'while :; do :; done'
begin sh -c 'while :; do :; done'
# shellcheck disable=SC2086
begin xterm $font -geometry 180x40+5+0 -e sh -c "attune top 2>>'$place/attune.log'"
until_it 60 xdotool search --onlyvisible --class MPlayer
until_it 60 xdotool search --onlyvisible --name vim

say "a person types for half a minute"
xdotool search --onlyvisible --name vim windowactivate --sync
xdotool key i
for _ in 1 2 3 4; do
    xdotool type --delay 125 "the person types into vim, and looks at a film. "
done

until_it 1 pgrep -f "^attune top"
attune focus show --dot | dot -Tsvg -o "$place/graph.svg"
attune focus explain "$(pgrep -x vim)" >&2
ffmpeg -loglevel error -f x11grab -draw_mouse 0 -video_size 1280x800 -i $DISPLAY \
    -frames:v 1 "$place/desktop.png"
tar -c -C "$place" graph.svg desktop.png
