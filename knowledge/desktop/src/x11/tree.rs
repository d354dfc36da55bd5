//! The windows of a display: which client draws where, and how much of it can be seen.
//!
//! A content window is one whose client is not that of its parent: a window on the root, or a
//! client's window inside the frame that a window manager put around it. A content window that
//! another one fills for the greater part is a frame, and does not count. Parts that windows
//! further up cover, or that lie outside of the screen, cannot be seen; windows with an alpha
//! channel cover nothing.
//!
//! The walk is bounded: at most `MOST_WINDOWS` windows, and `DEEPEST` levels below the root.

use std::thread;
use std::time::Duration;

use x11rb::connection::Connection;
use x11rb::errors::{ConnectionError, ReplyError};
use x11rb::protocol::shape::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    self, ConfigureNotifyEvent, ConnectionExt as _, MapState, Window, WindowClass,
};

use crate::region::{MOST_RECTS, Rect, Region};

const MOST_WINDOWS: usize = 2048;
const DEEPEST: usize = 4;
/// The server gets the time `ANSWERS` for so many windows. It writes each answer by itself, and a
/// monitor that waits for them takes the CPU from the server for each one.
const MANY: usize = 4;
const ANSWERS: Duration = Duration::from_millis(1);
/// A window's channel of transparency comes with this depth.
const ALPHA_DEPTH: u8 = 32;

/// A window that a client draws into.
#[derive(Clone, Debug)]
pub struct Content {
    pub window: Window,
    /// The root window of its screen.
    pub root: Window,
    /// The client, by the base of its resource numbers.
    pub client: u32,
    /// Where its own pixels begin on the screen.
    pub x: i32,
    pub y: i32,
    pub visible: Region,
    /// Later ones lie further up.
    pub order: usize,
}

struct Node {
    window: Window,
    client: u32,
    /// Without its border, on the screen.
    inside: Rect,
    /// As much of it as its ancestors show.
    clip: Rect,
    parent: Option<usize>,
    /// The window on the root that it belongs to.
    top: usize,
    content: bool,
}

/// A window on the root that is shown.
struct Top {
    /// Its node.
    place: usize,
    border: i32,
    outline: Region,
    covers: bool,
}

/// The windows of one screen.
struct Screen {
    root: Window,
    size: Rect,
    /// All windows on the root, the lowest first.
    stack: Vec<Window>,
    /// Parents before their children.
    nodes: Vec<Node>,
    /// The lowest first.
    tops: Vec<Top>,
}

/// The windows of a display, as the server told them.
#[derive(Default)]
pub struct Tree {
    screens: Vec<Screen>,
}

/// Clients by the resource numbers that the server gave them.
#[derive(Clone, Copy)]
pub struct Owners {
    pub mask: u32,
}

impl Owners {
    pub fn of(self, resource: u32) -> u32 {
        resource & !self.mask
    }
}

impl Tree {
    /// Asks the server for all windows. `Err`: the connection is gone.
    pub fn walk(
        connection: &impl Connection,
        owners: Owners,
        with_shape: bool,
    ) -> Result<Tree, ConnectionError> {
        let walk = |screen: &xproto::Screen| {
            let (width, height) = (screen.width_in_pixels, screen.height_in_pixels);
            let size = Rect::new(0, 0, i32::from(width), i32::from(height));
            Screen::walk(connection, owners, with_shape, screen.root, size)
        };
        let screens = connection.setup().roots.iter().map(walk);
        Ok(Tree { screens: screens.collect::<Result<_, _>>()? })
    }

    /// Follows a window on the root that only moved, with nothing asked of the server. False: more
    /// has happened, and a walk must tell what.
    pub fn moved(&mut self, event: &ConfigureNotifyEvent) -> bool {
        let screen = self.screens.iter_mut().find(|screen| screen.root == event.event);
        screen.is_some_and(|screen| screen.moved(event))
    }

    /// All content windows, the lowest first.
    pub fn contents(&self) -> Vec<Content> {
        let mut found = Vec::new();
        for screen in &self.screens {
            found.extend(screen.contents(found.len()));
        }
        found.sort_by_key(|content| content.order);
        found
    }
}

impl Screen {
    fn walk(
        connection: &impl Connection,
        owners: Owners,
        with_shape: bool,
        root: Window,
        size: Rect,
    ) -> Result<Screen, ConnectionError> {
        let tree = there(connection.query_tree(root)?.reply())?;
        let stack = tree.map_or(Vec::new(), |tree| tree.children);
        let mut level: Vec<(Window, Option<usize>)> =
            stack.iter().map(|&window| (window, None)).collect();
        let mut screen = Screen { root, size, stack, nodes: Vec::new(), tops: Vec::new() };
        for depth in 0..DEEPEST {
            level.truncate(MOST_WINDOWS.saturating_sub(screen.nodes.len()));
            if level.is_empty() {
                break;
            }
            if depth > 0 {
                level = screen.without_leaves(connection, owners, level)?;
            }
            let with_shape = depth == 0 && with_shape;
            level = screen.walk_level(connection, owners, with_shape, level)?;
        }
        Ok(screen)
    }

    /// A client's windows inside of its own count only for what others may have put into them. A
    /// window manager's frame has dozens, and the server writes each answer by itself.
    fn without_leaves(
        &self,
        connection: &impl Connection,
        owners: Owners,
        level: Vec<(Window, Option<usize>)>,
    ) -> Result<Vec<(Window, Option<usize>)>, ConnectionError> {
        let mut asked = Vec::with_capacity(level.len());
        for (window, parent) in level {
            let is_own =
                parent.is_some_and(|parent| self.nodes[parent].client == owners.of(window));
            let tree = is_own.then(|| connection.query_tree(window)).transpose()?;
            asked.push((window, parent, tree));
        }
        let_answer(connection, asked.len())?;
        let mut left = Vec::new();
        for (window, parent, tree) in asked {
            let is_leaf = match tree {
                Some(tree) => there(tree.reply())?.is_none_or(|tree| tree.children.is_empty()),
                None => false,
            };
            if !is_leaf {
                left.push((window, parent));
            }
        }
        Ok(left)
    }

    /// The next level.
    fn walk_level(
        &mut self,
        connection: &impl Connection,
        owners: Owners,
        with_shape: bool,
        level: Vec<(Window, Option<usize>)>,
    ) -> Result<Vec<(Window, Option<usize>)>, ConnectionError> {
        // All requests first, then all replies: one way to the server and back for a level.
        let mut asked = Vec::with_capacity(level.len());
        for (window, parent) in level {
            let shape = with_shape.then(|| connection.shape_query_extents(window)).transpose()?;
            asked.push((
                window,
                parent,
                connection.get_window_attributes(window)?,
                connection.get_geometry(window)?,
                connection.query_tree(window)?,
                shape,
            ));
        }
        let_answer(connection, asked.len())?;
        let mut next = Vec::new();
        for (window, parent, attributes, geometry, tree, shape) in asked {
            let shape = shape.map(|cookie| cookie.reply());
            let (attributes, geometry, tree) = match (
                there(attributes.reply())?,
                there(geometry.reply())?,
                there(tree.reply())?,
            ) {
                (Some(attributes), Some(geometry), Some(tree)) => (attributes, geometry, tree),
                // It was destroyed meanwhile.
                _ => continue,
            };
            if attributes.class != WindowClass::INPUT_OUTPUT
                || attributes.map_state != MapState::VIEWABLE
            {
                continue;
            }
            let origin = parent.map_or((0, 0), |parent| {
                (self.nodes[parent].inside.x, self.nodes[parent].inside.y)
            });
            let border = i32::from(geometry.border_width);
            let (width, height) = (i32::from(geometry.width), i32::from(geometry.height));
            let (x, y) = (i32::from(geometry.x) + border, i32::from(geometry.y) + border);
            let inside = Rect::new(x, y, width, height).moved(origin.0, origin.1);
            let client = owners.of(window);
            let place = self.nodes.len();
            let top = match parent {
                Some(parent) => self.nodes[parent].top,
                None => {
                    let is_shaped = matches!(&shape, Some(Ok(extents)) if extents.bounding_shaped);
                    let outline = match is_shaped {
                        true => outline(connection, window, inside)?,
                        false => Region::of([inside.grown(border)]),
                    };
                    // The server's own window over all others is where a compositor paints.
                    let covers = geometry.depth != ALPHA_DEPTH && client != 0;
                    self.tops.push(Top { place, border, outline, covers });
                    self.tops.len() - 1
                }
            };
            let content =
                client != 0 && parent.is_none_or(|parent| self.nodes[parent].client != client);
            let clip = self.clip(inside, parent);
            self.nodes.push(Node { window, client, inside, clip, parent, top, content });
            next.extend(tree.children.into_iter().map(|child| (child, Some(place))));
        }
        Ok(next)
    }

    /// As much of a window as its ancestors show.
    fn clip(&self, inside: Rect, parent: Option<usize>) -> Rect {
        let around = parent.map_or(self.size, |parent| self.nodes[parent].clip);
        inside.and(around).unwrap_or(Rect::new(0, 0, 0, 0))
    }

    fn moved(&mut self, event: &ConfigureNotifyEvent) -> bool {
        let Some(at) = self.stack.iter().position(|&window| window == event.window) else {
            return false;
        };
        let below = at.checked_sub(1).map_or(x11rb::NONE, |below| self.stack[below]);
        if below != event.above_sibling {
            return false;
        }
        let Some(number) =
            self.tops.iter().position(|top| self.nodes[top.place].window == event.window)
        else {
            // It is not shown.
            return true;
        };
        let top = &mut self.tops[number];
        let before = self.nodes[top.place].inside;
        let (x, y) = (i32::from(event.x) + top.border, i32::from(event.y) + top.border);
        let inside = Rect::new(x, y, i32::from(event.width), i32::from(event.height));
        let (right, down) = (x - before.x, y - before.y);
        if i32::from(event.border_width) != top.border || before.moved(right, down) != inside {
            return false;
        }
        top.outline = top.outline.moved(right, down);
        for place in 0..self.nodes.len() {
            let Node { top, parent, inside, .. } = self.nodes[place];
            if top == number {
                let inside = inside.moved(right, down);
                self.nodes[place].inside = inside;
                self.nodes[place].clip = self.clip(inside, parent);
            }
        }
        true
    }

    fn contents(&self, order: usize) -> Vec<Content> {
        // The content windows that lie directly inside a content window of another client.
        let mut inner: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (place, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.content) {
            let up = std::iter::successors(node.parent, |&parent| self.nodes[parent].parent);
            if let Some(outer) = up.into_iter().find(|&up| self.nodes[up].content) {
                inner[outer].push(place);
            }
        }
        // What covers a window of each top: everything further up. From the top down.
        let mut uncovered: Vec<Region> = vec![Region::default(); self.tops.len()];
        let mut free = Region::of([self.size]);
        for (place, top) in self.tops.iter().enumerate().rev() {
            uncovered[place] = free.clone();
            if top.covers {
                free.minus(&top.outline);
            }
        }
        let mut found = Vec::new();
        for (place, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.content) {
            let inside: u64 = inner[place].iter().map(|&inner| self.nodes[inner].clip.area()).sum();
            if inside * 2 > node.clip.area() {
                continue;
            }
            let mut visible = uncovered[node.top].and(node.clip);
            // A shaped window shows no more than its outline; of a plain one this is all.
            let mut hidden = visible.clone();
            hidden.minus(&self.tops[node.top].outline);
            visible.minus(&hidden);
            visible.minus(&Region::of(inner[place].iter().map(|&inner| self.nodes[inner].clip)));
            found.push(Content {
                window: node.window,
                root: self.root,
                client: node.client,
                x: node.inside.x,
                y: node.inside.y,
                visible,
                order: order + node.top,
            });
        }
        found
    }
}

/// Sends the requests for so many windows, and waits if they are many.
fn let_answer(connection: &impl Connection, windows: usize) -> Result<(), ConnectionError> {
    if windows >= MANY {
        connection.flush()?;
        thread::sleep(ANSWERS);
    }
    Ok(())
}

/// None: there is no such window any more.
fn there<T>(reply: Result<T, ReplyError>) -> Result<Option<T>, ConnectionError> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(ReplyError::X11Error(_)) => Ok(None),
        Err(ReplyError::ConnectionError(error)) => Err(error),
    }
}

fn outline(
    connection: &impl Connection,
    window: Window,
    inside: Rect,
) -> Result<Region, ConnectionError> {
    let shape = there(connection.shape_get_rectangles(window, shape::SK::BOUNDING)?.reply())?;
    let rects = shape.map(|shape| shape.rectangles).unwrap_or_default();
    if rects.len() > MOST_RECTS / 4 {
        return Ok(Region::of([inside]));
    }
    let rect = |rect: &x11rb::protocol::xproto::Rectangle| {
        Rect::new(rect.x.into(), rect.y.into(), rect.width.into(), rect.height.into())
            .moved(inside.x, inside.y)
    };
    Ok(Region::of(rects.iter().map(rect)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Rect = Rect { x: 0, y: 0, right: 100, bottom: 100 };

    fn node(window: u32, client: u32, rect: Rect, parent: Option<usize>, top: usize) -> Node {
        let clip = rect.and(SCREEN).unwrap_or(Rect::new(0, 0, 0, 0));
        Node { window, client, inside: rect, clip, parent, top, content: true }
    }

    fn top(place: usize, rect: Rect, covers: bool) -> Top {
        Top { place, border: 0, outline: Region::of([rect]), covers }
    }

    fn screen(nodes: Vec<Node>, tops: Vec<Top>) -> Screen {
        let stack = tops.iter().map(|top| nodes[top.place].window).collect();
        Screen { root: 9, size: SCREEN, stack, nodes, tops }
    }

    fn areas(screen: &Screen) -> Vec<(u32, u64)> {
        let found = screen.contents(0);
        found.iter().map(|content| (content.window, content.visible.area())).collect()
    }

    #[test]
    fn a_covered_window_shows_the_rest_and_a_transparent_one_covers_nothing() {
        let (low, high) = (Rect::new(0, 0, 50, 50), Rect::new(25, 0, 50, 100));
        let shown = |covers| {
            let nodes = vec![node(1, 1, low, None, 0), node(2, 2, high, None, 1)];
            areas(&screen(nodes, vec![top(0, low, true), top(1, high, covers)]))
        };
        assert_eq!(shown(true), [(1, 1250), (2, 5000)]);
        assert_eq!(shown(false), [(1, 2500), (2, 5000)]);
    }

    #[test]
    fn a_frame_does_not_count_and_a_small_window_inside_is_not_counted_twice() {
        let (frame, client) = (Rect::new(10, 10, 40, 40), Rect::new(11, 15, 38, 34));
        let shown = |inner| {
            let nodes = vec![node(1, 1, frame, None, 0), node(2, 2, inner, Some(0), 0)];
            areas(&screen(nodes, vec![top(0, frame, true)]))
        };
        assert_eq!(shown(client), [(2, 38 * 34)]);
        assert_eq!(shown(Rect::new(12, 12, 10, 10)), [(1, 1500), (2, 100)]);
    }

    #[test]
    fn a_shaped_window_shows_and_covers_its_outline_only() {
        let (low, high) = (Rect::new(0, 0, 100, 100), Rect::new(0, 0, 50, 50));
        let nodes = vec![node(1, 1, low, None, 0), node(2, 2, high, None, 1)];
        let shaped = Top { outline: Region::of([Rect::new(0, 0, 10, 10)]), ..top(1, high, true) };
        assert_eq!(areas(&screen(nodes, vec![top(0, low, true), shaped])), [(1, 9900), (2, 100)]);
    }

    fn configured(window: Window, below: Window, rect: Rect) -> ConfigureNotifyEvent {
        ConfigureNotifyEvent {
            event: 9,
            window,
            above_sibling: below,
            x: rect.x as i16,
            y: rect.y as i16,
            width: (rect.right - rect.x) as u16,
            height: (rect.bottom - rect.y) as u16,
            ..ConfigureNotifyEvent::default()
        }
    }

    #[test]
    fn a_window_that_moves_takes_its_contents_along_and_uncovers_what_it_covered() {
        let (low, frame) = (Rect::new(0, 0, 50, 50), Rect::new(0, 0, 50, 50));
        let client = Rect::new(1, 10, 48, 39);
        let nodes = vec![
            node(1, 1, low, None, 0),
            node(2, 2, frame, None, 1),
            node(3, 3, client, Some(1), 1),
        ];
        let mut screen = screen(nodes, vec![top(0, low, true), top(1, frame, true)]);
        assert_eq!(areas(&screen), [(1, 0), (3, 48 * 39)]);
        // To where a part of it is outside of the screen, and back.
        assert!(screen.moved(&configured(2, 1, frame.moved(75, 0))));
        assert_eq!(areas(&screen), [(1, 2500), (3, 24 * 39)]);
        assert!(screen.moved(&configured(2, 1, frame)));
        assert_eq!(areas(&screen), [(1, 0), (3, 48 * 39)]);
    }

    #[test]
    fn what_is_more_than_a_move_is_left_to_a_walk() {
        let (low, high) = (Rect::new(0, 0, 50, 50), Rect::new(25, 0, 50, 50));
        let nodes = vec![node(1, 1, low, None, 0), node(2, 2, high, None, 1)];
        let mut screen = screen(nodes, vec![top(0, low, true), top(1, high, true)]);
        let before = areas(&screen);
        for event in [
            configured(2, x11rb::NONE, high),
            configured(1, 2, low),
            configured(2, 1, Rect::new(25, 0, 51, 50)),
            configured(3, 2, high),
            ConfigureNotifyEvent { border_width: 1, ..configured(2, 1, high) },
        ] {
            assert!(!screen.moved(&event), "{event:?}");
        }
        assert_eq!(areas(&screen), before);
    }
}
