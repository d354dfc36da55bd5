//! Measures how much of the screen each client changes.
//!
//! The server tells once that a window was drawn into (report level NON_EMPTY); at the end of the
//! interval the monitor fetches what was changed, all windows in one go, and clears it. So a client
//! that draws all the time costs no more than one that draws once an interval, and clients are
//! compared over the same intervals.

use std::collections::{BTreeMap, BTreeSet};

use x11rb::connection::{Connection, RequestConnection};
use x11rb::errors::{ConnectionError, ReplyError, ReplyOrIdError};
use x11rb::protocol::damage::{self, ConnectionExt as _};
use x11rb::protocol::xfixes::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{Rectangle, Window};

use super::tree::Content;
use crate::region::{MOST_RECTS, Rect, Region};
/// Windows that are watched at most, those further up first.
const MOST_WATCHED: usize = 512;

struct Watched {
    damage: damage::Damage,
    client: u32,
    x: i32,
    y: i32,
    visible: Region,
}

pub struct DamageWatch {
    /// Where the server puts what was changed.
    region: xfixes::Region,
    windows: BTreeMap<Window, Watched>,
    by_damage: BTreeMap<damage::Damage, Window>,
    drawn: BTreeSet<Window>,
    /// Pixels that each client changed since they were taken last.
    changed: BTreeMap<u32, u64>,
}

impl DamageWatch {
    pub fn start(connection: &impl Connection) -> Result<DamageWatch, ReplyOrIdError> {
        let region = connection.generate_id()?;
        connection.xfixes_create_region(region, &[])?.check()?;
        Ok(DamageWatch {
            region,
            windows: BTreeMap::new(),
            by_damage: BTreeMap::new(),
            drawn: BTreeSet::new(),
            changed: BTreeMap::new(),
        })
    }

    /// Watches these windows and no others.
    pub fn follow(
        &mut self,
        connection: &impl Connection,
        contents: &[Content],
    ) -> Result<(), ReplyOrIdError> {
        let first = contents.len().saturating_sub(MOST_WATCHED);
        let contents: BTreeMap<Window, &Content> =
            contents[first..].iter().map(|content| (content.window, content)).collect();
        let gone: Vec<Window> = self
            .windows
            .iter()
            .filter(|(window, seen)| {
                contents.get(window).is_none_or(|content| content.client != seen.client)
            })
            .map(|(&window, _)| window)
            .collect();
        for window in gone {
            if let Some(watched) = self.windows.remove(&window) {
                self.by_damage.remove(&watched.damage);
                self.drawn.remove(&window);
                // The server may have dropped it along with the window.
                connection.damage_destroy(watched.damage)?.ignore_error();
            }
        }
        for (&window, content) in &contents {
            let (x, y, visible) = (content.x, content.y, content.visible.clone());
            if let Some(watched) = self.windows.get_mut(&window) {
                (watched.x, watched.y, watched.visible) = (x, y, visible);
                continue;
            }
            let damage = connection.generate_id()?;
            connection
                .damage_create(damage, window, damage::ReportLevel::NON_EMPTY)?
                .ignore_error();
            // A new one reports the whole window, which nobody has drawn just now.
            connection.damage_subtract(damage, x11rb::NONE, x11rb::NONE)?.ignore_error();
            self.by_damage.insert(damage, window);
            self.windows.insert(window, Watched { damage, client: content.client, x, y, visible });
        }
        Ok(())
    }

    /// The server said so.
    pub fn drawn(&mut self, damage: damage::Damage) {
        if let Some(&window) = self.by_damage.get(&damage) {
            self.drawn.insert(window);
        }
    }

    pub fn has_drawn(&self) -> bool {
        !self.drawn.is_empty()
    }

    /// Ends an interval.
    pub fn fetch(&mut self, connection: &impl Connection) -> Result<(), ConnectionError> {
        let drawn = std::mem::take(&mut self.drawn);
        let mut asked = Vec::with_capacity(drawn.len());
        for window in drawn {
            if let Some(watched) = self.windows.get(&window) {
                // The replies come in this order, each before the region is filled anew.
                connection
                    .damage_subtract(watched.damage, x11rb::NONE, self.region)?
                    .ignore_error();
                asked.push((window, connection.xfixes_fetch_region(self.region)?));
            }
        }
        for (window, cookie) in asked {
            let fetched = match cookie.reply() {
                Ok(fetched) => fetched,
                Err(ReplyError::X11Error(_)) => continue,
                Err(ReplyError::ConnectionError(error)) => return Err(error),
            };
            if let Some(watched) = self.windows.get(&window) {
                let place = |rect: &Rectangle| {
                    Rect::new(rect.x.into(), rect.y.into(), rect.width.into(), rect.height.into())
                        .moved(watched.x, watched.y)
                };
                let pixels = match fetched.rectangles.len() > MOST_RECTS {
                    true => watched.visible.area_of([place(&fetched.extents)]),
                    false => watched.visible.area_of(fetched.rectangles.iter().map(place)),
                };
                *self.changed.entry(watched.client).or_default() += pixels;
            }
        }
        Ok(())
    }

    /// Pixels that each client changed since the last call.
    pub fn take(&mut self) -> BTreeMap<u32, u64> {
        std::mem::take(&mut self.changed)
    }
}

/// Versions that are spoken; an answer must have come before anything else is asked.
pub fn agree(connection: &impl RequestConnection) -> Result<(), ReplyError> {
    connection.xfixes_query_version(5, 0)?.reply()?;
    connection.damage_query_version(1, 1)?.reply()?;
    Ok(())
}
