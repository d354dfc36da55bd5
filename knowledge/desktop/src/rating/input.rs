//! The input level of one client: an event lifts it to a part of the ceiling, and it falls by one a
//! second.

use crate::observation::{Input, Interaction, SECOND, Time};
use crate::settings::Settings;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InputLevel {
    /// The level at `at`.
    level: f64,
    at: Time,
    /// The interaction that lifted it last.
    pub interaction: Interaction,
}

impl InputLevel {
    /// The level after an event, whatever it was before. An event never lowers a level: a pointer
    /// that moves does not take away what a key gave.
    pub fn after(before: Option<InputLevel>, input: &Input, settings: &Settings) -> InputLevel {
        let part = match input.interaction {
            Interaction::Key => settings.key,
            Interaction::Click => settings.click,
            Interaction::Scroll => settings.scroll,
            Interaction::Motion => settings.motion,
            Interaction::Focus => settings.focus,
            Interaction::Woken => settings.woken,
        };
        let lifted = InputLevel {
            level: settings.ceiling * part,
            at: input.at,
            interaction: input.interaction,
        };
        match before {
            Some(before) => {
                // Events of two connections may come exchanged.
                let latest = input.at.max(before.at);
                if before.now(latest) > lifted.now(latest) { before } else { lifted }
            }
            None => lifted,
        }
    }

    pub fn now(&self, now: Time) -> f64 {
        let seconds = now.saturating_sub(self.at) as f64 / SECOND as f64;
        (self.level - seconds).max(0.0)
    }

    /// When the event came that gave this level.
    pub fn at(&self) -> Time {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::process::Process;

    fn input(interaction: Interaction, at: Time) -> Input {
        Input { process: Process { pid: 7, start: 7 }, interaction, at }
    }

    fn interactions() -> impl Strategy<Value = Interaction> {
        prop_oneof![
            Just(Interaction::Key),
            Just(Interaction::Click),
            Just(Interaction::Scroll),
            Just(Interaction::Motion),
            Just(Interaction::Focus),
            Just(Interaction::Woken),
        ]
    }

    #[test]
    fn a_key_counts_for_ten_seconds_and_falls_by_one_a_second() {
        let settings = Settings::default();
        let level = InputLevel::after(None, &input(Interaction::Key, 5 * SECOND), &settings);
        assert_eq!(level.now(5 * SECOND), 10.0);
        assert_eq!(level.now(9 * SECOND), 6.0);
        assert_eq!(level.now(15 * SECOND), 0.0);
        assert_eq!(level.now(99 * SECOND), 0.0);
    }

    #[test]
    fn a_pointer_that_moves_does_not_take_away_what_a_key_gave() {
        let settings = Settings::default();
        let typed = InputLevel::after(None, &input(Interaction::Key, 0), &settings);
        let moved = InputLevel::after(Some(typed), &input(Interaction::Motion, SECOND), &settings);
        assert_eq!(moved.now(SECOND), 9.0);
        assert_eq!(moved.interaction, Interaction::Key);
        let later =
            InputLevel::after(Some(moved), &input(Interaction::Motion, 9 * SECOND), &settings);
        assert_eq!(later.now(9 * SECOND), 2.0);
    }

    proptest! {
        /// Whatever comes, in whatever order: never above the ceiling, never lower for an event.
        #[test]
        fn a_level_stays_within_the_ceiling_and_no_event_lowers_it(
            events in proptest::collection::vec((interactions(), 0..60 * SECOND), 1..40),
        ) {
            let settings = Settings::default();
            let mut level: Option<InputLevel> = None;
            for (interaction, at) in events {
                let after = InputLevel::after(level, &input(interaction, at), &settings);
                let latest = after.at().max(level.map_or(0, |level| level.at()));
                prop_assert!(after.now(latest) <= settings.ceiling);
                if let Some(before) = level {
                    prop_assert!(after.now(latest) >= before.now(latest) - 1e-9);
                }
                level = Some(after);
            }
        }
    }
}
