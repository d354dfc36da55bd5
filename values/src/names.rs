//! The names by which those who supply values and policies know each other.
//!
//! First those of cooperating programs, thread imports that `schedulers/coop.sched` declares;
//! docs/coop.md says what each means. Then the ratings of `schedulers/human.sched`; see
//! docs/focus.md.

/// How often the thread has polled; 0: it does not cooperate.
pub const POLLS: &str = "polls";
/// The release of its first timer whose service has not begun; 0: none.
pub const NEXT_RELEASE: &str = "next_release";
/// The importance of its best-effort work; smaller is more important.
pub const IMPORTANCE: &str = "importance";
/// The programs among which importance is compared; 0: the thread is alone.
pub const GROUP: &str = "group";
/// The policy's answer: when to poll again.
pub const UNTIL: &str = "until";
/// The policy's answer: the importance of the others' best-effort work.
pub const OTHERS: &str = "others";

/// How much of the person's input reaches the process: 0 to 1000, 0 is not rated.
pub const INPUT_RATING: &str = "input_rating";
/// How much of what the person sees comes from the process: 0 to 1000.
pub const OUTPUT_RATING: &str = "output_rating";
