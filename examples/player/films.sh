#!/usr/bin/env bash
# Makes films to play. Each has easy and hard scenes in an order of its own, so that their bit rates
# vary strongly, and differently.
#
#     films.sh DIRECTORY COUNT SECONDS [SIZE] [RATE] [KIND]
#
# KIND: pyramid (H.264, strict pyramids of B frames, the default) or independent (H.264 without
# dependencies between frames). The same arguments make the same films: film-1.mkv to
# film-COUNT.mkv. Needs ffmpeg.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,9s/^# \?//p' "$0" >&2; exit 2; }
directory=$1 count=$2 seconds=$3 size=${4:-640x360} rate=${5:-25} kind=${6:-pyramid}
scene_seconds=2

case $kind in
pyramid) coding="b-pyramid=strict:bframes=3:b-adapt=0:keyint=$rate:min-keyint=5:open-gop=0:ref=4" ;;
independent) coding="keyint=1" ;;
*) echo "films.sh: $kind: wants pyramid or independent" >&2; exit 2 ;;
esac

mkdir -p "$directory"
for ((film = 1; film <= count; film++)); do
    # Drawn here alone, never in $(..): a subshell begins with a seed of its own.
    RANDOM=$film
    scenes="" joined=""
    number=$(((seconds + scene_seconds - 1) / scene_seconds))
    for ((i = 0; i < number; i++)); do
        common="s=$size:r=$rate"
        # Each kind of scene comes before one comes again, in an order of this film's own.
        if [ $((i % 4)) = 0 ]; then
            order=(0 1 2 3)
            for last in 3 2 1; do
                other=$((RANDOM % (last + 1))) kept=${order[last]}
                order[last]=${order[other]} order[other]=$kept
            done
        fi
        colour=$((RANDOM * 512 % 16777216))
        case ${order[i % 4]} in
        0) scene="testsrc2=$common" ;;
        1)
            start="start_x=-0.74$((RANDOM % 10)):start_scale=0.$((RANDOM % 8 + 1))"
            end="end_scale=0.001:end_pts=$((seconds * rate))"
            scene="mandelbrot=$common:maxiter=300:$start:$end"
            ;;
        2) scene="testsrc=$common,noise=alls=$((RANDOM % 8 + 4)):allf=t:all_seed=$RANDOM" ;;
        3) scene="color=0x$(printf %06x $colour):$common" ;;
        esac
        scenes+="$scene,trim=duration=$scene_seconds,setpts=PTS-STARTPTS,"
        scenes+="format=yuv420p,setsar=1[s$i];"
        joined+="[s$i]"
    done
    tone=$((220 + film * 55))
    sound="aevalsrc='0.2*sin($tone*2*PI*t)*(1+sin(2*PI*t))':s=48000:d=$seconds"
    ffmpeg -v error -y -f lavfi -i "$sound" \
        -filter_complex "$scenes${joined}concat=n=$number:v=1:a=0[v]" \
        -map '[v]' -map 0:a -t "$seconds" \
        -c:v libx264 -preset veryfast -crf 23 -threads 1 -x264-params "$coding" -c:a aac -ac 2 \
        -fflags +bitexact -flags:v +bitexact -flags:a +bitexact \
        "$directory/film-$film.mkv.part.mkv"
    mv "$directory/film-$film.mkv.part.mkv" "$directory/film-$film.mkv"
done
