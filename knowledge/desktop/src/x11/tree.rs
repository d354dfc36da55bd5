//! The windows of a display: which client draws where, and how much of it can be seen.
//!
//! A content window is one whose client is not that of its parent: a window on the root, or a
//! client's window inside the frame that a window manager put around it. A content window that
//! another one fills for the greater part is a frame, and does not count. Parts that windows
//! further up cover, or that lie outside of the screen, cannot be seen; windows with an alpha
//! channel cover nothing.
//!
//! The walk is bounded: at most `MOST_WINDOWS` windows, and `DEEPEST` levels below the root.

use x11rb::connection::Connection;
use x11rb::errors::{ConnectionError, ReplyError};
use x11rb::protocol::shape::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{ConnectionExt as _, MapState, Window, WindowClass};

use crate::region::{MOST_RECTS, Rect, Region};

const MOST_WINDOWS: usize = 2048;
const DEEPEST: usize = 4;
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

struct Top {
    outline: Region,
    covers: bool,
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

/// All content windows of all screens. `Err`: the connection is gone.
pub fn walk(
    connection: &impl Connection,
    owners: Owners,
    with_shape: bool,
) -> Result<Vec<Content>, ConnectionError> {
    let mut content = Vec::new();
    for screen in &connection.setup().roots {
        let size =
            Rect::new(0, 0, i32::from(screen.width_in_pixels), i32::from(screen.height_in_pixels));
        let order = content.len();
        content.extend(walk_screen(connection, owners, with_shape, screen.root, size, order)?);
    }
    Ok(content)
}

fn walk_screen(
    connection: &impl Connection,
    owners: Owners,
    with_shape: bool,
    root: Window,
    screen: Rect,
    order: usize,
) -> Result<Vec<Content>, ConnectionError> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut tops: Vec<Top> = Vec::new();
    let children = match connection.query_tree(root)?.reply() {
        Ok(tree) => tree.children,
        Err(ReplyError::ConnectionError(error)) => return Err(error),
        Err(ReplyError::X11Error(_)) => Vec::new(),
    };
    let mut level: Vec<(Window, Option<usize>)> =
        children.into_iter().map(|window| (window, None)).collect();
    for depth in 0..DEEPEST {
        level.truncate(MOST_WINDOWS.saturating_sub(nodes.len()));
        if level.is_empty() {
            break;
        }
        let mut next = Vec::new();
        // All requests first, then all replies: one way to the server and back for a level.
        let mut asked = Vec::with_capacity(level.len());
        for &(window, parent) in &level {
            let shaped = match depth == 0 && with_shape {
                true => Some(connection.shape_query_extents(window)?),
                false => None,
            };
            asked.push((
                window,
                parent,
                connection.get_window_attributes(window)?,
                connection.get_geometry(window)?,
                connection.query_tree(window)?,
                shaped,
            ));
        }
        for (window, parent, attributes, geometry, tree, shaped) in asked {
            let shaped = shaped.map(|cookie| cookie.reply());
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
            let origin =
                parent.map_or((0, 0), |parent| (nodes[parent].inside.x, nodes[parent].inside.y));
            let border = i32::from(geometry.border_width);
            let (width, height) = (i32::from(geometry.width), i32::from(geometry.height));
            let outer = Rect::new(
                i32::from(geometry.x),
                i32::from(geometry.y),
                width + 2 * border,
                height + 2 * border,
            )
            .moved(origin.0, origin.1);
            let inside = Rect::new(outer.x + border, outer.y + border, width, height);
            let around = parent.map_or(screen, |parent| nodes[parent].clip);
            let nothing = Rect::new(0, 0, 0, 0);
            let clip = inside.and(around).unwrap_or(nothing);
            let client = owners.of(window);
            let top = match parent {
                Some(parent) => nodes[parent].top,
                None => {
                    let is_shaped = matches!(&shaped, Some(Ok(extents)) if extents.bounding_shaped);
                    let outline = match is_shaped {
                        true => outline(connection, window, inside)?,
                        false => Region::of([outer]),
                    };
                    // The server's own window over all others is where a compositor paints.
                    let covers = geometry.depth != ALPHA_DEPTH && client != 0;
                    tops.push(Top { outline, covers });
                    tops.len() - 1
                }
            };
            let content = client != 0 && parent.is_none_or(|parent| nodes[parent].client != client);
            let place = nodes.len();
            nodes.push(Node { window, client, inside, clip, parent, top, content });
            next.extend(tree.children.into_iter().map(|child| (child, Some(place))));
        }
        level = next;
    }
    Ok(contents(&nodes, &tops, root, screen, order))
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

fn contents(
    nodes: &[Node],
    tops: &[Top],
    root: Window,
    screen: Rect,
    order: usize,
) -> Vec<Content> {
    // The content windows that lie directly inside a content window of another client.
    let mut inner: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (place, node) in nodes.iter().enumerate().filter(|(_, node)| node.content) {
        let up = std::iter::successors(node.parent, |&parent| nodes[parent].parent);
        if let Some(outer) = up.into_iter().find(|&up| nodes[up].content) {
            inner[outer].push(place);
        }
    }
    // What covers a window of each top: everything further up. From the top down.
    let mut uncovered: Vec<Region> = vec![Region::default(); tops.len()];
    let mut free = Region::of([screen]);
    for (place, top) in tops.iter().enumerate().rev() {
        uncovered[place] = free.clone();
        if top.covers {
            free.minus(&top.outline);
        }
    }
    let mut found = Vec::new();
    for (place, node) in nodes.iter().enumerate().filter(|(_, node)| node.content) {
        let inside: u64 = inner[place].iter().map(|&inner| nodes[inner].clip.area()).sum();
        if inside * 2 > node.clip.area() {
            continue;
        }
        let mut visible = uncovered[node.top].and(node.clip);
        // A shaped window shows no more than its outline; of a plain one this is all.
        let mut hidden = visible.clone();
        hidden.minus(&tops[node.top].outline);
        visible.minus(&hidden);
        visible.minus(&Region::of(inner[place].iter().map(|&inner| nodes[inner].clip)));
        found.push(Content {
            window: node.window,
            root,
            client: node.client,
            x: node.inside.x,
            y: node.inside.y,
            visible,
            order: order + node.top,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Rect = Rect { x: 0, y: 0, right: 100, bottom: 100 };

    fn node(window: u32, client: u32, rect: Rect, parent: Option<usize>, top: usize) -> Node {
        let clip = rect.and(SCREEN).unwrap_or(Rect::new(0, 0, 0, 0));
        Node { window, client, inside: rect, clip, parent, top, content: true }
    }

    fn top(rect: Rect, covers: bool) -> Top {
        Top { outline: Region::of([rect]), covers }
    }

    fn areas(nodes: &[Node], tops: &[Top]) -> Vec<(u32, u64)> {
        let found = contents(nodes, tops, 0, SCREEN, 0);
        found.iter().map(|content| (content.window, content.visible.area())).collect()
    }

    #[test]
    fn a_covered_window_shows_the_rest_and_a_transparent_one_covers_nothing() {
        let (low, high) = (Rect::new(0, 0, 50, 50), Rect::new(25, 0, 50, 100));
        let nodes = [node(1, 1, low, None, 0), node(2, 2, high, None, 1)];
        assert_eq!(areas(&nodes, &[top(low, true), top(high, true)]), [(1, 1250), (2, 5000)]);
        assert_eq!(areas(&nodes, &[top(low, true), top(high, false)]), [(1, 2500), (2, 5000)]);
    }

    #[test]
    fn a_frame_does_not_count_and_a_small_window_inside_is_not_counted_twice() {
        let (frame, client) = (Rect::new(10, 10, 40, 40), Rect::new(11, 15, 38, 34));
        let nodes = [node(1, 1, frame, None, 0), node(2, 2, client, Some(0), 0)];
        assert_eq!(areas(&nodes, &[top(frame, true)]), [(2, 38 * 34)]);
        let small = Rect::new(12, 12, 10, 10);
        let nodes = [node(1, 1, frame, None, 0), node(2, 2, small, Some(0), 0)];
        assert_eq!(areas(&nodes, &[top(frame, true)]), [(1, 1500), (2, 100)]);
    }

    #[test]
    fn a_shaped_window_shows_and_covers_its_outline_only() {
        let (low, high) = (Rect::new(0, 0, 100, 100), Rect::new(0, 0, 50, 50));
        let nodes = [node(1, 1, low, None, 0), node(2, 2, high, None, 1)];
        let shaped = Top { outline: Region::of([Rect::new(0, 0, 10, 10)]), covers: true };
        assert_eq!(areas(&nodes, &[top(low, true), shaped]), [(1, 9900), (2, 100)]);
    }
}
