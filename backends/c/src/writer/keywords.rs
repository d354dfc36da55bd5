//! Names that C, or a header that verbatim text may rely on, has taken. A scheduler's variable of
//! such a name gets an underscore.
//!
//! Inside verbatim text the name means what C means by it; the scheduler's variable stands there as
//! `time_`.

use std::collections::HashSet;
use std::sync::LazyLock;

/// The name as C can have it: keywords, macros, functions of the four headers, the runtime's own
/// names and what the language reserves for the compiler are moved out of the way.
pub fn variable(name: &str) -> String {
    let taken = KEYWORDS.contains(name) || FUNCTIONS.contains(name) || is_reserved(name);
    if taken { format!("{name}_") } else { identifier(name) }
}

/// The name as a member of the thread record: members clash with keywords, macros, and the record's
/// head only.
pub fn member(name: &str) -> String {
    let taken = KEYWORDS.contains(name) || name == "userdata" || is_reserved(name);
    if taken { format!("{name}_") } else { identifier(name) }
}

/// Whether C has a meaning for the name that verbatim text may rely on.
pub fn means_something_in_c(name: &str) -> bool {
    KEYWORDS.contains(name) || FUNCTIONS.contains(name) || name.ends_with("_t")
}

fn is_reserved(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.starts_with("attune")
        || name.starts_with("__")
        || name
            .strip_prefix("check_")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        || (name.starts_with('_') && name[1..].starts_with(|c: char| c.is_ascii_uppercase()))
        || name.ends_with("_t")
        || ["INT", "UINT"].iter().any(|prefix| name.starts_with(prefix))
            && ["_MAX", "_MIN", "_WIDTH", "_C"].iter().any(|suffix| name.ends_with(suffix))
}

/// Whatever the front end lets through, as an identifier.
fn identifier(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
        format!("_{name}")
    } else {
        name
    }
}

/// Of C11 and C23, and macros that compilers and headers define as plain words.
static KEYWORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    "
alignas alignof auto bool break case char const constexpr continue default do double else enum \
    extern false float for goto if
inline int long nullptr register restrict return short signed sizeof static static_assert struct \
    switch thread_local true
typedef typeof typeof_unqual union unsigned void volatile while asm fortran linux unix i386
ADJ_ESTERROR ADJ_FREQUENCY ADJ_MAXERROR ADJ_MICRO ADJ_NANO ADJ_OFFSET ADJ_OFFSET_SINGLESHOT
ADJ_OFFSET_SS_READ ADJ_SETOFFSET ADJ_STATUS ADJ_TAI ADJ_TICK ADJ_TIMECONST BIG_ENDIAN BUFSIZ \
    BYTE_ORDER
CLOCKS_PER_SEC CLOCK_BOOTTIME CLOCK_BOOTTIME_ALARM CLOCK_MONOTONIC CLOCK_MONOTONIC_COARSE
CLOCK_MONOTONIC_RAW CLOCK_PROCESS_CPUTIME_ID CLOCK_REALTIME CLOCK_REALTIME_ALARM \
    CLOCK_REALTIME_COARSE
CLOCK_TAI CLOCK_THREAD_CPUTIME_ID EOF EXIT_FAILURE EXIT_SUCCESS FD_SETSIZE FILENAME_MAX FOPEN_MAX
LITTLE_ENDIAN L_ctermid L_cuserid L_tmpnam MB_CUR_MAX MOD_CLKA MOD_CLKB MOD_ESTERROR MOD_FREQUENCY
MOD_MAXERROR MOD_MICRO MOD_NANO MOD_OFFSET MOD_STATUS MOD_TAI MOD_TIMECONST NFDBITS NULL PDP_ENDIAN
PTRDIFF_MAX PTRDIFF_MIN PTRDIFF_WIDTH P_tmpdir RAND_MAX RENAME_EXCHANGE RENAME_NOREPLACE \
    RENAME_WHITEOUT
SEEK_CUR SEEK_DATA SEEK_END SEEK_HOLE SEEK_SET SIG_ATOMIC_MAX SIG_ATOMIC_MIN SIG_ATOMIC_WIDTH \
    SIZE_MAX
SIZE_WIDTH STA_CLK STA_CLOCKERR STA_DEL STA_FLL STA_FREQHOLD STA_INS STA_MODE STA_NANO STA_PLL
STA_PPSERROR STA_PPSFREQ STA_PPSJITTER STA_PPSSIGNAL STA_PPSTIME STA_PPSWANDER STA_RONLY STA_UNSYNC
TIMER_ABSTIME TIME_UTC TMP_MAX WCHAR_MAX WCHAR_MIN WCHAR_WIDTH WCONTINUED WEXITED WINT_MAX WINT_MIN
WINT_WIDTH WNOHANG WNOWAIT WSTOPPED WUNTRACED errno stderr stdin stdout"
        .split_whitespace()
        .collect()
});

/// Functions, variables and macros with arguments of <stdio.h>, <stdlib.h>, <string.h> and
/// <time.h>, extensions included.
static FUNCTIONS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    "
FD_CLR FD_ISSET FD_SET FD_ZERO FILE WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED \
    WSTOPSIG
WTERMSIG a64l abort abs aligned_alloc alloca arc4random arc4random_buf arc4random_uniform asctime
asctime_r asprintf at_quick_exit atexit atof atoi atol atoll basename bcmp bcopy be16toh be32toh \
    be64toh
bsearch bzero calloc canonicalize_file_name clearenv clearerr clearerr_unlocked clock clock_adjtime
clock_getcpuclockid clock_getres clock_gettime clock_nanosleep clock_settime ctermid ctime ctime_r
cuserid daylight difftime div dprintf drand48 drand48_r dysize ecvt ecvt_r erand48 erand48_r exit
explicit_bzero fclose fcloseall fcvt fcvt_r fd_mask fd_set fdopen feof feof_unlocked ferror
ferror_unlocked fflush fflush_unlocked ffs ffsl ffsll fgetc fgetc_unlocked fgetpos fgetpos64 fgets
fgets_unlocked fileno fileno_unlocked flockfile fmemopen fopen fopen64 fopencookie fprintf fputc
fputc_unlocked fputs fputs_unlocked fread fread_unlocked free freopen freopen64 fscanf fseek fseeko
fseeko64 fsetpos fsetpos64 ftell ftello ftello64 ftrylockfile funlockfile fwrite fwrite_unlocked \
    gcvt
getc getc_unlocked getchar getchar_unlocked getdate getdate_err getdate_r getdelim getenv getline
getloadavg getpt getsubopt getw gmtime gmtime_r grantpt htobe16 htobe32 htobe64 htole16 htole32 \
    htole64
index initstate initstate_r jrand48 jrand48_r l64a labs lcong48 lcong48_r ldiv le16toh le32toh \
    le64toh
llabs lldiv localtime localtime_r lrand48 lrand48_r malloc mblen mbstowcs mbtowc memccpy memchr \
    memcmp
memcpy memfrob memmem memmove mempcpy memrchr memset mkdtemp mkostemp mkostemp64 mkostemps \
    mkostemps64
mkstemp mkstemp64 mkstemps mkstemps64 mktemp mktime mrand48 mrand48_r nanosleep nrand48 nrand48_r
obstack_printf obstack_vprintf offsetof on_exit open_memstream pclose perror popen posix_memalign
posix_openpt printf pselect ptsname ptsname_r putc putc_unlocked putchar putchar_unlocked putenv \
    puts
putw qecvt qecvt_r qfcvt qfcvt_r qgcvt qsort qsort_r quick_exit rand rand_r random random_r \
    rawmemchr
realloc reallocarray realpath remove rename renameat renameat2 rewind rindex rpmatch scanf \
    secure_getenv
seed48 seed48_r select setbuf setbuffer setenv setlinebuf setstate setstate_r setvbuf sigabbrev_np
sigdescr_np snprintf sprintf srand srand48 srand48_r srandom srandom_r sscanf stpcpy stpncpy \
    strcasecmp
strcasecmp_l strcasestr strcat strchr strchrnul strcmp strcoll strcoll_l strcpy strcspn strdup \
    strdupa
strerror strerror_l strerror_r strerrordesc_np strerrorname_np strfromd strfromf strfromf32 \
    strfromf32x
strfromf64 strfromf64x strfroml strfry strftime strftime_l strlen strncasecmp strncasecmp_l strncat
strncmp strncpy strndup strndupa strnlen strpbrk strptime strptime_l strrchr strsep strsignal strspn
strstr strtod strtod_l strtof strtof32 strtof32_l strtof32x strtof32x_l strtof64 strtof64_l \
    strtof64x
strtof64x_l strtof_l strtok strtok_r strtol strtol_l strtold strtold_l strtoll strtoll_l strtoq \
    strtoul
strtoul_l strtoull strtoull_l strtouq strverscmp strxfrm strxfrm_l system tempnam time timegm \
    timelocal
timer_create timer_delete timer_getoverrun timer_gettime timer_settime timespec_get timespec_getres
timezone tmpfile tmpfile64 tmpnam tmpnam_r tzname tzset u_char u_int u_long u_short uint ulong \
    ungetc
unlockpt unsetenv ushort va_list valloc vasprintf vdprintf vfprintf vfscanf vprintf vscanf vsnprintf
vsprintf vsscanf wcstombs wctomb"
        .split_whitespace()
        .collect()
});
