//! Observes which client got which kind of input.
//!
//! RECORD tells of each event that the server delivers, with the client that receives it. It needs
//! two connections of its own, and a thread that waits at one of them. The monitor reads only the
//! type of an event, and the number of a button to tell the wheel from a click: it never reads
//! which key was pressed. Events that one client sends to another are no input.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use attune_linux::time;
use x11rb::connection::{Connection, RequestConnection};
use x11rb::errors::ReplyError;
use x11rb::protocol::record::{self, ConnectionExt as _};
use x11rb::protocol::xinput;
use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, GE_GENERIC_EVENT, KEY_PRESS_EVENT, MOTION_NOTIFY_EVENT,
};
use x11rb::rust_connection::RustConnection;

use crate::observation::{Interaction, Time};

/// An event for a client, by the base of its resource numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delivered {
    pub client: u32,
    pub what: What,
    pub at: Time,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    Input(Interaction),
    /// The client came or left: its numbers mean another process now.
    Changed,
}

pub struct Recording {
    control: RustConnection,
    context: record::Context,
    events: Receiver<Delivered>,
    pub bases: [u32; 2],
}

const FROM_SERVER: u8 = 0;
const CLIENT_STARTED: u8 = 2;
const CLIENT_DIED: u8 = 3;
const START_OF_DATA: u8 = 4;
/// A server that records begins within that time.
const BEGINS: Duration = Duration::from_secs(1);

impl Recording {
    /// None: the server has no RECORD. `bell` gets a byte when events came. What happens after the
    /// call is recorded.
    pub fn start(display: &str, bell: UnixStream) -> Result<Option<Recording>, ReplyError> {
        let connect = || {
            x11rb::connect(Some(display)).map(|(connection, _)| connection).map_err(|_| {
                ReplyError::ConnectionError(x11rb::errors::ConnectionError::UnknownError)
            })
        };
        let control = connect()?;
        if control.extension_information(record::X11_EXTENSION_NAME)?.is_none() {
            return Ok(None);
        }
        control.record_query_version(1, 13)?.reply()?;
        let data = connect()?;
        let xinput =
            data.extension_information(xinput::X11_EXTENSION_NAME)?.map(|found| found.major_opcode);
        let bases = [control.setup().resource_id_base, data.setup().resource_id_base];
        let context = control.generate_id().map_err(|_| {
            ReplyError::ConnectionError(x11rb::errors::ConnectionError::UnknownError)
        })?;
        let range = |first, last| {
            let none8 = record::Range8 { first: 0, last: 0 };
            let none16 = record::Range16 { first: 0, last: 0 };
            let none = record::ExtRange { major: none8, minor: none16 };
            record::Range {
                core_requests: none8,
                core_replies: none8,
                ext_requests: none,
                ext_replies: none,
                delivered_events: record::Range8 { first, last },
                device_events: none8,
                errors: none8,
                client_started: true,
                client_died: true,
            }
        };
        let ranges = [
            range(KEY_PRESS_EVENT, MOTION_NOTIFY_EVENT),
            range(GE_GENERIC_EVENT, GE_GENERIC_EVENT),
        ];
        let all = [record::CS::ALL_CLIENTS.into()];
        let header = record::ElementHeader::from(0u8);
        control.record_create_context(context, header, &all, &ranges)?.check()?;
        let (tell, events) = channel();
        let (begin, begun) = channel();
        std::thread::spawn(move || {
            let Ok(replies) = data.record_enable_context(context) else { return };
            // Ends with the context, or with the server.
            for reply in replies {
                let Ok(reply) = reply else { break };
                let at = time::now();
                let client = reply.xid_base;
                let delivered = |what| Delivered { client, what, at };
                let told: Vec<Delivered> = match reply.category {
                    FROM_SERVER => {
                        interactions(&reply.data, xinput).map(What::Input).map(delivered).collect()
                    }
                    CLIENT_STARTED | CLIENT_DIED => vec![delivered(What::Changed)],
                    START_OF_DATA => {
                        let _ = begin.send(());
                        continue;
                    }
                    _ => continue,
                };
                if told.is_empty() {
                    continue;
                }
                if told.into_iter().any(|one| tell.send(one).is_err()) {
                    break;
                }
                // A full pipe rings already.
                let _ = (&bell).write(&[1]);
            }
        });
        // If none begins the events end, and the reader sees that.
        let _ = begun.recv_timeout(BEGINS);
        Ok(Some(Recording { control, context, events, bases }))
    }

    /// What came since the last call. None: the server has gone.
    pub fn take(&self) -> Option<Vec<Delivered>> {
        let mut all = Vec::new();
        loop {
            match self.events.try_recv() {
                Ok(event) => all.push(event),
                Err(TryRecvError::Empty) => return Some(all),
                Err(TryRecvError::Disconnected) if all.is_empty() => return None,
                Err(TryRecvError::Disconnected) => return Some(all),
            }
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // The thread ends when the server says that the context has ended.
        if self.control.record_disable_context(self.context).is_ok() {
            let _ = self.control.flush();
        }
    }
}

/// The interactions in a piece of the stream from the server to a client: events of 32 bytes, or
/// more where a generic event says so.
fn interactions(mut data: &[u8], xinput: Option<u8>) -> impl Iterator<Item = Interaction> {
    let mut found = BTreeSet::new();
    while data.len() >= 32 {
        let more = match data[0] & 0x7f {
            GE_GENERIC_EVENT => {
                u32::from_ne_bytes([data[4], data[5], data[6], data[7]]) as usize * 4
            }
            _ => 0,
        };
        // Sent by another client, not by a device.
        let sent = data[0] & 0x80 != 0;
        let interaction = match data[0] & 0x7f {
            KEY_PRESS_EVENT => Some(Interaction::Key),
            BUTTON_PRESS_EVENT => Some(button(u32::from(data[1]))),
            MOTION_NOTIFY_EVENT => Some(Interaction::Motion),
            GE_GENERIC_EVENT if Some(data[1]) == xinput => generic(data),
            _ => None,
        };
        found.extend(interaction.filter(|_| !sent));
        data = data.get(32 + more..).unwrap_or_default();
    }
    found.into_iter()
}

/// Reads an event of the input extension's second version. Its raw events go to every client that
/// listens.
fn generic(data: &[u8]) -> Option<Interaction> {
    match u16::from_ne_bytes([data[8], data[9]]) {
        xinput::KEY_PRESS_EVENT => Some(Interaction::Key),
        xinput::BUTTON_PRESS_EVENT | xinput::TOUCH_BEGIN_EVENT => {
            let number = u32::from_ne_bytes([data[16], data[17], data[18], data[19]]);
            Some(button(number))
        }
        xinput::MOTION_EVENT | xinput::TOUCH_UPDATE_EVENT => Some(Interaction::Motion),
        _ => None,
    }
}

/// Buttons 4 to 7 are the wheel.
pub fn button(number: u32) -> Interaction {
    if (4..=7).contains(&number) { Interaction::Scroll } else { Interaction::Click }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: u8, detail: u8) -> Vec<u8> {
        let mut bytes = vec![0; 32];
        (bytes[0], bytes[1]) = (kind, detail);
        bytes
    }

    fn xi(opcode: u8, kind: u16, detail: u32, words: u32) -> Vec<u8> {
        let mut bytes = event(GE_GENERIC_EVENT, opcode);
        bytes[4..8].copy_from_slice(&words.to_ne_bytes());
        bytes[8..10].copy_from_slice(&kind.to_ne_bytes());
        bytes[16..20].copy_from_slice(&detail.to_ne_bytes());
        bytes.resize(32 + words as usize * 4, 0xff);
        bytes
    }

    fn found(bytes: &[Vec<u8>]) -> Vec<Interaction> {
        interactions(&bytes.concat(), Some(131)).collect()
    }

    #[test]
    fn presses_wheel_and_motion_are_told_apart_in_one_piece() {
        let piece = [event(2, 38), event(12, 0), event(4, 5), xi(131, 4, 1, 20), event(6, 0)];
        assert_eq!(
            found(&piece),
            [Interaction::Key, Interaction::Click, Interaction::Scroll, Interaction::Motion]
        );
    }

    #[test]
    fn what_a_client_sends_and_other_extensions_are_no_input() {
        assert_eq!(found(&[event(2 | 0x80, 38), xi(140, 2, 38, 4), xi(131, 13, 38, 2)]), []);
    }

    #[test]
    fn a_piece_that_is_cut_or_lies_about_its_length_does_no_harm() {
        let mut lying = xi(131, 2, 38, 0);
        lying[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(found(&[event(2, 38)[..20].to_vec()]), []);
        assert_eq!(found(&[lying]), [Interaction::Key]);
    }
}
