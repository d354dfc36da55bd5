//! A client of an X server that the test itself is.

use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    ConnectionExt as _, CreateGCAux, CreateWindowAux, Gcontext, Rectangle, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;

/// A window, and a pen.
pub struct Painter {
    pub connection: RustConnection,
    pub window: Window,
    pub pen: Gcontext,
}

impl Painter {
    pub fn show(display: &str, x: i16, y: i16, width: u16, height: u16) -> Painter {
        let (connection, screen) = x11rb::connect(Some(display)).unwrap();
        let screen = &connection.setup().roots[screen];
        let (window, pen) = (connection.generate_id().unwrap(), connection.generate_id().unwrap());
        let looks = CreateWindowAux::new().override_redirect(1).background_pixel(0);
        let class = WindowClass::INPUT_OUTPUT;
        connection
            .create_window(0, window, screen.root, x, y, width, height, 0, class, 0, &looks)
            .unwrap();
        connection.create_gc(pen, window, &CreateGCAux::new().foreground(0xffffff)).unwrap();
        connection.map_window(window).unwrap();
        connection.get_input_focus().unwrap().reply().unwrap();
        Painter { connection, window, pen }
    }

    pub fn fill(&self, rect: Rectangle) {
        self.connection.poly_fill_rectangle(self.window, self.pen, &[rect]).unwrap();
        self.connection.get_input_focus().unwrap().reply().unwrap();
    }
}
