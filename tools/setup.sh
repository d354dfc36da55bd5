#!/usr/bin/env bash
# Installs what building, testing and the demo need, and only what is missing. For Debian, as root
# or with sudo.
#
#     tools/setup.sh [build|test|demo|peers|players|webserver|database|embedded|threads]
#
# Other systems: install the like of the list below by hand; nothing else is assumed.
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:-demo}

# Entries are COMMAND:PACKAGE, the command that tells whether the package is there.
# clang compiles the BPF programs; libbpf, which loads them, is built from its crate and needs
# libelf and zlib. etcd's client makes its messages with protoc.
packages="cc:gcc make:make pkg-config:pkg-config clang-19:clang-19 protoc:protobuf-compiler"
case $purpose in
build) ;;
demo) packages="$packages curl:curl" ;;
# `attune lab peers build` compiles with it.
peers) packages="$packages curl:curl llvm-strip-19:llvm-19" ;;
# The experiments listen to real players and reserve for them (docs/lab.md).
players)
    packages="$packages ffmpeg:ffmpeg ffplay:ffmpeg mplayer:mplayer mpv:mpv cvlc:vlc-bin sox:sox \
        pulseaudio:pulseaudio Xvfb:xvfb strace:strace setpriv:util-linux openbox:openbox \
        xterm:xterm vim:vim pipewire:pipewire pw-cat:pipewire-bin pipewire-pulse:pipewire-pulse \
        nano:nano less:less emacs:emacs-lucid top:procps /usr/games/chocolate-doom:chocolate-doom \
        firefox-esr:firefox-esr soffice:libreoffice-writer"
    ;;
# `attune lab run webserver` and `proxy` compare with nginx; webserver measures with wrk too.
webserver) packages="$packages wrk:wrk nginx:nginx-light ip:iproute2" ;;
# MariaDB and its headers: examples/database, and `attune lab run transactions`.
database)
    packages="$packages mariadbd:mariadb-server mariadb:mariadb-client \
        mariadb_config:libmariadb-dev"
    ;;
# `attune lab run yield-cost thread-scale` compiles other libraries' programs.
threads) packages="$packages c++:g++ go:golang-go taskset:util-linux" ;;
# `attune lab run weather thread-metric embedded-web` builds and emulates firmware; FreeRTOS and
# lwIP come below.
embedded)
    packages="$packages arm-none-eabi-gcc:gcc-arm-none-eabi qemu-system-arm:qemu-system-arm"
    ;;
# stress-ng and rt-app run under the kernel engine, in the virtual machine; ffmpeg makes films for
# the example player, Xvfb shows them, pulseaudio plays and parec records their sound;
# tools/suites.pl needs all of Perl, of which `prove` is a part; openbox, xterm, vim and xdotool are
# the desktop of knowledge/desktop's tests, sway, foot, wtype and Xwayland the one of Wayland,
# PipeWire and wireplumber (with a message bus) its other sound server; valgrind watches threads and
# gdb lists them, and g++ compiles theirs in C++; MariaDB loads the function of examples/database;
# systemd and crun run in the virtual machine, where dbus-send asks systemd for what systemctl asks
# through a bus; etcd joins clusters of several machines, for which openssl makes certificates;
# `make lint` checks the C with clang-format, so that all machines agree on its version.
test)
    packages="$packages dot:graphviz curl:curl prove:perl setpriv:util-linux taskset:util-linux \
        script:bsdutils wrk:wrk nginx:nginx-light ip:iproute2 stress-ng:stress-ng rt-app:rt-app \
        etcd:etcd-server etcdctl:etcd-client openssl:openssl \
        ffmpeg:ffmpeg Xvfb:xvfb pulseaudio:pulseaudio parec:pulseaudio-utils \
        openbox:openbox xterm:xterm vim:vim xdotool:xdotool \
        sway:sway foot:foot wtype:wtype Xwayland:xwayland pipewire:pipewire \
        pipewire-pulse:pipewire-pulse pw-cat:pipewire-bin wireplumber:wireplumber \
        dbus-daemon:dbus-daemon systemd-analyze:systemd dbus-send:dbus-bin \
        crun:crun valgrind:valgrind gdb:gdb c++:g++ \
        mariadbd:mariadb-server mariadb:mariadb-client mariadb_config:libmariadb-dev \
        clang-format-19:clang-format-19 \
        arm-none-eabi-gcc:gcc-arm-none-eabi qemu-system-arm:qemu-system-arm"
    ;;
*)
    echo "usage: tools/setup.sh" \
        "[build|test|demo|peers|players|webserver|database|embedded|threads]" >&2
    exit 2
    ;;
esac

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "setup: installing packages needs root or sudo; missing: $missing" >&2
        exit 1
    fi
}

# Experiments start nginx and MariaDB by themselves: Debian's packages must not start services.
without_services() {
    if [ -e /usr/sbin/policy-rc.d ]; then
        "$@"
        return
    fi
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod +x /usr/sbin/policy-rc.d
    local status=0
    "$@" || status=$?
    rm -f /usr/sbin/policy-rc.d
    return $status
}

missing=""
for entry in $packages; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${entry%%:*}" >/dev/null ||
        missing="$missing ${entry#*:}"
done
# libc's headers and clang's sanitizers come with no command of their own.
has_headers() { printf '#include <%s>\n' "$@" | cc -E -x c - >/dev/null 2>&1; }
has_headers stdio.h || missing="$missing gcc libc6-dev"
has_headers libelf.h zlib.h || missing="$missing libelf-dev zlib1g-dev"
# What messages are made from beside protoc.
[ -e /usr/include/google/protobuf/descriptor.proto ] || missing="$missing libprotobuf-dev"
if [ "$purpose" = threads ]; then
    has_headers st.h pth.h || missing="$missing libst-dev libpth-dev"
    [ -e /usr/include/boost/fiber/fiber.hpp ] || missing="$missing libboost-fiber-dev"
fi
if [ "$purpose" = test ]; then
    echo 'int main(void) { return 0; }' |
        clang-19 -fsanitize=address,undefined -x c - -o /dev/null 2>/dev/null ||
        missing="$missing libclang-rt-19-dev"
fi
# The example player's libraries (examples/player/Makefile).
player_libraries="libavformat:libavformat-dev libavcodec:libavcodec-dev \
    libswscale:libswscale-dev libswresample:libswresample-dev libavutil:libavutil-dev \
    xcb:libxcb1-dev xcb-shm:libxcb-shm0-dev xcb-sync:libxcb-sync-dev libpulse:libpulse-dev"
if [ "$purpose" = test ]; then
    for entry in $player_libraries; do
        pkg-config --exists "${entry%%:*}" 2>/dev/null || missing="$missing ${entry#*:}"
    done
fi
if [ "$purpose" = players ] && command -v dpkg >/dev/null; then
    # Parts of players that have no command of their own.
    for package in vlc-plugin-base vlc-plugin-video-output libsox-fmt-mp3 libsox-fmt-pulse \
        freedoom; do
        dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
    done
fi
# lwIP includes a C library's headers, which come with no command of their own.
if [ "$purpose" = embedded ] || [ "$purpose" = test ]; then
    [ -d /usr/lib/arm-none-eabi/newlib ] || missing="$missing libnewlib-arm-none-eabi"
fi
if [ "$purpose" = peers ]; then
    [ -e /usr/lib/llvm-19/lib/libclang.so ] || missing="$missing libclang-19-dev"
fi

if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null; then
        echo "setup: this is no Debian; please install the like of:$missing" >&2
        exit 1
    fi
    echo "setup: installing$missing"
    export -f without_services
    # shellcheck disable=SC2086
    as_root bash -c "set -e; export DEBIAN_FRONTEND=noninteractive; apt-get -qq update; \
        without_services apt-get -qq install -y --no-install-recommends $(echo $missing) >/dev/null"
fi

# The load's tests read the kernel's own tracer; a test says what it lacks if this does not work.
if [ "$purpose" = test ] && [ ! -e /sys/kernel/tracing/instances ]; then
    missing="(mount tracefs)"
    as_root mount -t tracefs nodev /sys/kernel/tracing || true
fi

# Rust: what the workspace asks for, or newer.
wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
rust_is_new_enough() {
    command -v cargo >/dev/null || return 1
    local have
    have=$(cargo --version | cut -d' ' -f2)
    [ "$(printf '%s\n%s\n' "$wanted" "$have" | sort -V | head -n1)" = "$wanted" ]
}
# An earlier set-up may have put it where this shell does not look yet.
[ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
if ! rust_is_new_enough; then
    echo "setup: installing Rust $wanted or newer"
    if ! command -v rustup >/dev/null; then
        missing=rustup
        if apt-cache policy rustup 2>/dev/null | grep -q 'Candidate: [0-9]'; then
            as_root apt-get -qq install -y rustup >/dev/null
        else
            curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
                sh -s -- -y -q --profile minimal
            . "$HOME/.cargo/env"
        fi
    fi
    rustup -q toolchain install stable --profile minimal
    rustup -q default stable
    rust_is_new_enough || {
        echo "setup: cargo is older than $wanted, which this project needs; install a newer Rust" \
            "from https://rustup.rs" >&2
        exit 1
    }
fi

# FreeRTOS, MIT licence, to be measured beside: a crate carries its sources.
if [ "$purpose" = embedded ]; then
    cache=${XDG_CACHE_HOME:-$HOME/.cache}/attune/freertos
    if [ ! -e "$cache/freertos-next-0.12.0" ]; then
        folder=$(mktemp -d)
        mkdir -p "$folder/src" "$cache"
        touch "$folder/src/lib.rs"
        cat >"$folder/Cargo.toml" <<END
[package]
name = "sources"
version = "0.0.0"
edition = "2021"
[workspace]
[dependencies]
freertos-next = "=0.12.0"
END
        (cd "$folder" && cargo vendor -q --versioned-dirs vendor >/dev/null)
        cp -r "$folder/vendor/freertos-next-0.12.0" "$cache/"
        rm -r "$folder"
    fi
fi

# lwIP, BSD licence, the TCP/IP of the example web server: the sources of a Debian release, whose
# signature apt checks, and whose version this name pins.
if [ "$purpose" = embedded ] || [ "$purpose" = test ]; then
    lwip=2.1.3+dfsg1
    cache=${XDG_CACHE_HOME:-$HOME/.cache}/attune/lwip
    if [ ! -e "$cache/$lwip" ]; then
        folder=$(mktemp -d)
        mkdir -p "$folder/lists/partial" "$cache"
        echo "deb-src http://deb.debian.org/debian bookworm main" >"$folder/sources.list"
        (
            cd "$folder"
            from="-o Dir::Etc::sourcelist=$folder/sources.list -o Dir::Etc::sourceparts=/dev/null \
                -o Dir::State::lists=$folder/lists -o APT::Sandbox::User=root"
            # shellcheck disable=SC2086
            apt-get -qq $from update
            # shellcheck disable=SC2086
            apt-get -qq $from --download-only source lwip="$lwip-2"
            mkdir "$lwip"
            tar xJf "lwip_$lwip.orig.tar.xz" -C "$lwip" --strip-components=1
        )
        mv "$folder/$lwip" "$cache/"
        rm -r "$folder"
    fi
fi
