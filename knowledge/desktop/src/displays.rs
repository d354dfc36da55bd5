//! The adapters for displays, and which of them fits: an adapter for another compositor gets its
//! line here.

use crate::display::{Display, DisplayError};
use crate::sway::Sway;
use crate::x11::{InputSource, X11};

/// `name`: an X display such as `:0`, or the path of a socket of sway; None: what the environment
/// says. Below a Wayland compositor that is not known its Xwayland is better than nothing.
pub fn connect(name: Option<&str>, source: InputSource) -> Result<Box<dyn Display>, DisplayError> {
    let is_set = |variable| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    match name {
        Some(path) if path.contains('/') => {
            return Ok(Box::new(Sway::connect(Some(path.as_ref()))?));
        }
        None if is_set("SWAYSOCK") || is_set("WAYLAND_DISPLAY") => match Sway::connect(None) {
            Err(_) if is_set("DISPLAY") && !is_set("SWAYSOCK") => {}
            found => return Ok(Box::new(found?)),
        },
        _ => {}
    }
    Ok(Box::new(X11::connect(name, source)?))
}
